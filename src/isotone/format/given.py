"""Cues as they were given, with the times of their words: what subtitles are where the transcript was subtitles."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from isotone.alignment import Alignment, Segment
from isotone.format.cues import Cue, Layout, Part, until_read
from isotone.format.ticks import last_tick
from isotone.format.tier_names import voices
from isotone.passage import Passage, Sheet

# Verdicts on texts that are not what is said.
_UNSAID = frozenset({"wrong", "no speech"})

# Markup of subtitles, with times within cues.
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]*>|<[\d:.]+>|\{\\[^{}\n]*\}")


@dataclass(frozen=True)
class Given:
    """A cue as it was given.

    Attributes:
        passages: Its passages.
        cue: Its text, with its new times.
        heard: True where one of its words has a time; False where the cue's time is moved with its neighbours.
    """

    passages: tuple[Passage, ...]
    cue: Cue
    heard: bool

    @property
    def where(self) -> str:
        """Its place in the file, for people."""
        return self.passages[0].where or repr(self.passages[0].text[:30])


def has_cues(alignment: Alignment, tier: str) -> bool:
    """Tell if the transcript had passages with times, of whose words some are in a tier, or none was heard at all.

    Raises:
        KeyError: the alignment does not have the tier.
    """
    words = [word for voice in voices(alignment, tier).values() for word in voice]
    timed = any(p.start is not None for p in alignment.passages)
    return timed and (not words or any(w.origin is not None and w.origin.passage is not None for w in words))


def was_subtitles(alignment: Alignment) -> bool:
    """Tell if the transcript was subtitles."""
    return bool(alignment.passages) and all(p.cue for p in alignment.passages)


def given_cues(alignment: Alignment, tier: str, layout: Layout) -> list[Given]:
    """Give cues as they were given the times of their words.

    A cue starts with its first word and ends with its last, or when it has been read; one without timed words keeps
    its own time, moved as the starts of its neighbours are, and within the silence between them where that has room.
    Where the text as a whole is likely not what is said, times of words mean nothing, and all cues keep their own.

    Args:
        alignment: The alignment, with the passages of its transcript.
        tier: The tier of words.
        layout: How long cues with words stay: its ``reading_speed`` and ``min_s``.

    Returns:
        All cues, in the order of the transcript.

    Raises:
        KeyError: the alignment does not have the tier.
    """
    words: dict[int, list[Segment]] = defaultdict(list)
    for voice in () if alignment.verdict in _UNSAID else voices(alignment, tier).values():
        for segment in voice:
            if segment.origin is not None and segment.origin.passage is not None:
                words[segment.origin.passage].append(segment)
    grouped = [tuple(group) for _, group in groupby(alignment.passages, _cue_of)]
    heard = [[s for p in group for s in words.get(_number(p), ())] for group in grouped]
    spans = [(min(_ms(s.start) for s in own), max(_ms(s.end) for s in own)) if own else None for own in heard]
    found = []
    for group, span, own in zip(grouped, _all_placed(grouped, spans), heard):
        parts = [part for p in group for part in (Part("\n"), *_parts(p.text, words.get(_number(p), ())))][1:]
        cue = Cue(tuple(_trimmed(parts)), span[0], max(span[1], span[0] + 1), group[0].speaker or "")
        found.append(Given(group, cue, bool(own)))
    return _until_read(found, layout, last_tick(alignment.duration, 1000))


def sheet_of(alignment: Alignment) -> Sheet | None:
    """Return the file of subtitles that the transcript was; None for another one."""
    cue = alignment.passages[0].cue if alignment.passages else None
    return cue.sheet if cue else None


def notes(cues: Sequence[Given]) -> Iterator[str]:
    """Iterate over sentences for people: the cues whose times are not those of words."""
    silent = [one.where for one in cues if not one.heard]
    if silent and len(silent) == len(cues):
        yield "the cues keep the times that they had: none has a word whose time is known"
    elif silent:
        of_cues = (
            f"{len(silent)} of {len(cues)} cues {'has' if len(silent) == 1 else 'have'} no word with a time"
        )
        yield f"{of_cues} and moved with the cues around: {_listed(silent)}"


def _cue_of(passage: Passage) -> int:
    return _number(passage) if passage.cue is None else passage.cue.number


def _number(passage: Passage) -> int:
    return -1 if passage.number is None else passage.number


def _all_placed(
    grouped: Sequence[Sequence[Passage]], spans: Sequence[tuple[int, int] | None]
) -> list[tuple[int, int]]:
    """Return times of all cues: those of their words, else their own, moved with their neighbours; milliseconds."""
    given = _given_times(grouped)
    heard = [(own, span) for own, span in zip(given, spans) if span]
    anchors = sorted((own[0], span[0] - own[0]) for own, span in heard)
    # files need not be in order of time, and cues that overlap may do so on purpose
    before = sorted((own[1], span[1]) for own, span in heard)
    after = sorted((own[0], span[0]) for own, span in heard)
    out: list[tuple[int, int]] = []
    for span, (start, end) in zip(spans, given):
        if span is None:
            earlier, later = bisect_right(before, (start, _FAR)), bisect_left(after, (end, -_FAR))
            moved = _shift(start, anchors)
            start, end = max(0, start + moved), max(0, end + moved)
            first = max(start, before[earlier - 1][1] if earlier else 0)
            last = first + end - start
            last = min(last, after[later][1]) if later < len(after) else last
            # without room it is shown together with a neighbour
            span = (first, last) if last - first >= (end - start) / 2 else (start, end)
        out.append(span)
    return out


def _given_times(grouped: Iterable[Sequence[Passage]]) -> list[tuple[int, int]]:
    """Return the given times of cues in milliseconds; a missing end is the next start, a missing start the last end."""
    out: list[tuple[int, int]] = []
    rows = [
        ([p.start for p in g if p.start is not None], [p.end for p in g if p.end is not None])
        for g in grouped
    ]
    now = 0
    for i, (starts, ends) in enumerate(rows):
        start = _ms(min(starts)) if starts else now
        later = [_ms(min(following)) for following, _ in rows[i + 1 : i + 2] if following]
        end = _ms(max(ends)) if ends else later[0] if later else start
        now = max(start, end)
        out.append((start, now))
    return out


def _shift(time: int, anchors: Sequence[tuple[int, int]]) -> int:
    """Return by how much a time moves: as the nearest anchor does, or in between as both do; without any it stays."""
    if not anchors:
        return 0
    place = bisect_left(anchors, (time, -_FAR))
    if place in (0, len(anchors)):
        return anchors[min(place, len(anchors) - 1)][1]
    (before, first), (after, second) = anchors[place - 1], anchors[place]
    return round(first + (second - first) * (time - before) / (after - before))


def _until_read(found: Sequence[Given], layout: Layout, limit: int) -> list[Given]:
    """Show cues with words until they have been read, as those that are made anew are."""
    order = sorted(range(len(found)), key=lambda i: found[i].cue.start)
    read = dict(zip(order, until_read([found[i].cue for i in order], layout, limit)))
    return [replace(one, cue=read[i]) if one.heard else one for i, one in enumerate(found)]


def _parts(text: str, words: Sequence[Segment]) -> Iterator[Part]:
    """Divide the text of a passage into its timed words and what is between; the times of its own tags are left out."""
    now = 0
    for word in sorted(words, key=lambda s: s.origin.start if s.origin else 0):
        if word.origin is None or not now <= word.origin.start < word.origin.end <= len(text):
            continue
        yield from _untimed(text[now : word.origin.start])
        own = list(_untimed(text[word.origin.start : word.origin.end]))
        spoken = max(own, key=lambda part: 0 if part.tag else len(part.text))
        for part in own:
            yield part._replace(start=_ms(word.start), end=_ms(word.end)) if part is spoken else part
        now = word.origin.end
    yield from _untimed(text[now:])


def _trimmed(parts: list[Part]) -> list[Part]:
    """Return the parts of a text without white space before and after it: recognisers begin with a space."""
    if parts:
        parts[0] = parts[0]._replace(text=parts[0].text.lstrip())
        parts[-1] = parts[-1]._replace(text=parts[-1].text.rstrip())
    return parts


def _untimed(text: str) -> Iterator[Part]:
    """Divide a text into markup and what is between."""
    now = 0
    for match in _TAG.finditer(text):
        if match.start() > now:
            yield Part(text[now : match.start()])
        if not match[0][1].isdecimal():
            yield Part(match[0], tag=True)
        now = match.end()
    if now < len(text):
        yield Part(text[now:])


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


# Cues that are named to people.
_MOST = 20

# Milliseconds that no file has.
_FAR = 10**12
