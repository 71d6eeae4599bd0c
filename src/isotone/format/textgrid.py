"""Praat's TextGrid, long and short."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any, Literal

from praatio.utilities import textgrid_io

from isotone.alignment import Alignment, AlignmentError, Margin, Tier
from isotone.format.reading import FormatError, Row, build_tier
from isotone.format.ticks import describe_empty, last_tick, to_ticks
from isotone.interfaces import Format

logger = logging.getLogger(__name__)

_RATE = 10**9
_LEAST_TICKS = _RATE // 1000  # 1 ms for a segment without duration: the shortest selection in Praat
_NOISE_TICKS = _RATE // 10**6

# Praat reads separate texts, numbers and flags; all other words are for people, and ! starts a comment.
_TOKEN = re.compile(r'"[^"]*+(?:""[^"]*+)*+"|![^\r\n]*|[^\s"]\S*|"')
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


class TextGridFormat(Format):
    """Praat TextGrid: every tier is an interval tier, with empty labels for silence.

    The resolution is 1 ns. Intervals need a duration, so a labelled segment without one gets 1 ms of the time after it
    (less if there is no room), with a warning. Gaps and overlaps under 1 microsecond are closed. Scores are not kept.
    Quotes are doubled; a NUL, which ends a text in Praat, becomes U+FFFD. The reader accepts both styles and any text
    that Praat accepts; it ignores point tiers.

    Where margins are known (:class:`isotone.alignment.Margin`), point tiers such as ``words margins`` come after all
    others, whose numbers stay. A point stands at every boundary. Its label has milliseconds before and after, and the
    probability of being within 20 ms: ``-8 +14 93%``.

    Args:
        style: ``"long"`` or ``"short"``, for writing.
        keep_empty: Read empty intervals as segments instead of gaps.
    """

    suffix = ".TextGrid"

    def __init__(self, *, style: Literal["long", "short"] = "long", keep_empty: bool = False) -> None:
        if style not in ("long", "short"):
            raise ValueError(f"A TextGrid's style is 'long' or 'short'; got {style!r}.")
        self.style = style
        self.keep_empty = keep_empty

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            AlignmentError: the audio has no duration, or too many segments for it.
        """
        duration = float(alignment.duration)
        if duration <= 0:
            raise AlignmentError(f"Alignment {alignment.id!r}: a TextGrid needs audio longer than 0 s.")
        tiers: list[dict[str, Any]] = [
            {
                "class": "IntervalTier",
                "name": _text(tier.name),
                "xmin": 0.0,
                "xmax": duration,
                "entries": _intervals(tier, alignment.id, duration),
            }
            for tier in alignment.tiers
        ]
        # last, for scripts know tiers by their numbers
        margins = ((tier, points) for tier in alignment.tiers if (points := _points(tier, duration)))
        tiers += [
            {
                "class": "TextTier",
                "name": f"{_text(tier.name)} margins",
                "xmin": 0.0,
                "xmax": duration,
                "entries": points,
            }
            for tier, points in margins
        ]
        return textgrid_io.getTextgridAsStr(
            {"xmin": 0.0, "xmax": duration, "tiers": tiers},
            f"{self.style}_textgrid",
            includeBlankSpaces=False,  # they are included already; praatio would drop short intervals
        )

    def loads(self, text: str, id: str) -> Alignment:
        """Read a TextGrid; ``xmax`` is the duration.

        Raises:
            FormatError: not a TextGrid, cut short, or intervals that overlap; the message names the line.
        """
        # not praatio's reader: it strips labels, fails on labels that look like syntax, and accepts half a file
        values = _Values(text)
        _header(values)
        values.number("xmin of the file")
        duration = values.number("xmax of the file")
        exists = values.flag("<exists> or <absent>")
        count = values.count("the number of tiers") if exists == "<exists>" else 0
        tiers = [tier for _ in range(count) if (tier := self._tier(values, duration)) is not None]
        values.end(f"{count} tiers")
        try:
            return Alignment(id, duration, tuple(tiers))
        except AlignmentError as error:
            raise FormatError(f"{error} Rename or move it in Praat.") from None

    def _tier(self, values: _Values, duration: float) -> Tier | None:
        kind = values.text("a tier's class")
        if kind not in ("IntervalTier", "TextTier"):
            raise FormatError(f"line {values.line}: expected class IntervalTier or TextTier; got {kind!r}.")
        name = values.text("a tier's name")
        values.number(f"xmin of tier {name!r}")
        values.number(f"xmax of tier {name!r}")
        rows = []
        for i in range(values.count(f"the number of entries of tier {name!r}")):
            what = f"of entry {i + 1} of tier {name!r}"
            start = values.number(f"a time {what}")
            line = values.line
            end = values.number(f"xmax {what}") if kind == "IntervalTier" else start
            if end > duration + 1e-6 and kind == "IntervalTier":
                raise FormatError(
                    f"line {line}: expected xmax {what} to be at most {duration} s; got {end} s."
                )
            label = values.text(f"the text {what}")
            rows.append(Row(line, label, start, end))
        if kind == "TextTier":
            return None
        tier = build_tier(name, rows)
        return tier if self.keep_empty else Tier(name, tuple(s for s in tier if s.label))


def _intervals(tier: Tier, id: str, duration: float) -> list[tuple[float, float, str]]:
    """Return intervals in seconds that cover the audio, as praatio's entries."""
    if empty := describe_empty(tier.segments):
        logger.warning("TextGrid of %r, tier %r: segments get 1 ms: %s.", id, tier.name, empty)
    segments = [s for s in tier if s.label or s.end > s.start]
    ticks = to_ticks(segments, duration, _RATE, least=_LEAST_TICKS)
    if any(end <= start for start, end in ticks):
        raise AlignmentError(
            f"Alignment {id!r}, tier {tier.name!r}: {len(segments)} intervals do not fit into {duration} s."
        )
    out: list[tuple[int, int, str]] = []
    now = 0
    for (start, end), segment in zip(ticks, segments):
        now = _fill(out, now, start)
        out.append((now, end, _text(segment.label)))
        now = end
    _fill(out, now, last_tick(duration, _RATE))
    times = [(start / _RATE, end / _RATE, label) for start, end, label in out or [(0, 0, "")]]
    return [*times[:-1], (times[-1][0], duration, times[-1][2])]


def _points(tier: Tier, duration: float) -> list[tuple[float, str]]:
    """Return the boundaries with margins as praatio's points: times in seconds, and labels."""
    found: dict[int, Margin] = {}
    for segment in tier:
        for time, margin in ((segment.start, segment.start_margin), (segment.end, segment.end_margin)):
            if margin is not None and time <= duration:
                found.setdefault(round(float(time) * _RATE), margin)
    return [
        (tick / _RATE, f"-{1000 * m.before:.0f} +{1000 * m.after:.0f} {100 * m.near:.0f}%")
        for tick, m in sorted(found.items())
    ]


def _fill(out: list[tuple[int, int, str]], now: int, until: int) -> int:
    """Add the silence between two ticks, or close a gap that is rounding noise; return the next start."""
    if until - now >= _NOISE_TICKS:
        out.append((now, until, ""))
        return until
    if out:
        out[-1] = (out[-1][0], until, out[-1][2])
        return until
    return now


def _text(label: str) -> str:
    return str(label).replace("\0", "\ufffd")


def _header(values: _Values) -> None:
    kind = values.text('File type = "ooTextFile"')
    if kind.startswith("Praat chronological"):
        raise FormatError(
            f"line {values.line}: expected an ooTextFile; got a chronological TextGrid: open it in Praat and "
            "save it with 'Save as text file'."
        )
    if kind not in ("ooTextFile", "ooTextFile short"):
        raise FormatError(f'line {values.line}: expected File type = "ooTextFile"; got {kind!r}.')
    what = values.text('Object class = "TextGrid"')
    if what != "TextGrid":
        raise FormatError(f'line {values.line}: expected Object class = "TextGrid"; got {what!r}.')


class _Values:
    """Iterator over the texts, numbers and flags of a Praat text file."""

    def __init__(self, text: str) -> None:
        self.line = 1
        self._source = self._tokens(text)

    def _tokens(self, text: str) -> Iterator[str]:
        position, line = 0, 1
        for match in _TOKEN.finditer(text):
            token = match[0]
            line += text.count("\n", position, match.start())
            position = match.start()
            if token == '"':
                raise FormatError(
                    f"line {line}: expected a closing quote for the text that starts here; got the end."
                )
            if token[0] in '"<' or _NUMBER.fullmatch(token):
                self.line = line
                yield token

    def _next(self, what: str) -> str:
        token = next(self._source, None)
        if token is None:
            raise FormatError(f"line {self.line}: expected {what} after it; got the end of the file.")
        return token

    def text(self, what: str) -> str:
        """Read the next value, a quoted text."""
        token = self._next(what)
        if token[0] != '"':
            raise FormatError(f"line {self.line}: expected {what}, in quotes; got {token}.")
        return token[1:-1].replace('""', '"')

    def number(self, what: str) -> float:
        """Read the next value, a time in seconds."""
        token = self._next(what)
        if not _NUMBER.fullmatch(token):
            raise FormatError(f"line {self.line}: expected {what}, a number; got {token[:40]}.")
        value = float(token)
        if value < 0 or value == float("inf"):
            raise FormatError(f"line {self.line}: expected {what} to be 0 s or later; got {token}.")
        return value + 0.0

    def count(self, what: str) -> int:
        """Read the next value, a whole number."""
        value = self.number(what)
        if value != int(value):
            raise FormatError(f"line {self.line}: expected {what}, a whole number; got {value}.")
        return int(value)

    def flag(self, what: str) -> str:
        """Read the next value, ``<exists>`` or ``<absent>``."""
        token = self._next(what)
        if token not in ("<exists>", "<absent>"):
            raise FormatError(f"line {self.line}: expected {what}; got {token[:40]}.")
        return token

    def end(self, after: str) -> None:
        """Check that no values are left."""
        token = next(self._source, None)
        if token is not None:
            raise FormatError(
                f"line {self.line}: expected the end of the file after {after}; got {token[:40]}."
            )
