"""NIST's CTM: one line per word, several utterances per file."""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation

from isotone.alignment import Alignment, Segment
from isotone.format.reading import FormatError, Row, build_tier, numbered_lines, parse_seconds
from isotone.format.ticks import to_ticks
from isotone.format.tier_names import voices
from isotone.interfaces import Format

_LEAST_CONFIDENCE = 1e-6
# Sums of posteriors, which Kaldi writes, may be that much above 1.
_ROUNDING = 1e-3


class CTMFormat(Format):
    """CTM lines ``id channel start duration label [confidence]``, one tier.

    The confidence is the segment's own, else ``exp(score)`` from 1e-6 to 1, else left out; when read, it is the
    segment's confidence. Fields have no white space: each such character of an id or label becomes ``_``. Silence
    (empty labels) has no line. Words of several speakers are in order of time. The length of the audio is not kept:
    when read, it ends with the last segment. A file of several utterances is their texts, joined.

    Args:
        tier: The tier to write, and the name of the tier that is read.
        channel: Channel to write. When read, an id with several channels becomes one utterance per channel,
            ``id:channel``.
        decimals: Decimals of seconds, at least 3.
    """

    suffix = ".ctm"

    def __init__(self, *, tier: str = "words", channel: str = "1", decimals: int = 3) -> None:
        if decimals < 3:
            raise ValueError(f"CTM needs 3 decimals or more, so that words stay apart; got {decimals}.")
        if not channel or re.search(r"\s", channel):
            raise ValueError(f"A CTM channel is a word such as '1' or 'A'; got {channel!r}.")
        self.tier = tier
        self.channel = channel
        self.decimals = decimals

    def dumps(self, alignment: Alignment) -> str:
        """Return the lines of the utterance; none for an empty tier.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        rows = []
        for tier in voices(alignment, self.tier).values():
            segments = [s for s in tier if s.label]
            ticks = to_ticks(segments, alignment.duration, 10**self.decimals)
            rows += [(start, end, segment) for segment, (start, end) in zip(segments, ticks)]
        rows.sort(key=lambda row: row[:2])
        return "".join(self._line(_id(alignment.id), *row) for row in rows)

    def label(self, segment: Segment) -> str:
        """Return the last fields of a line: label and confidence."""
        confidence = _confidence(segment)
        if confidence is None:
            return word_of(segment.label)
        return f"{word_of(segment.label)} {min(1.0, max(_LEAST_CONFIDENCE, confidence)):.6g}"

    def _line(self, id: str, start: int, end: int, segment: Segment) -> str:
        times = f"{_fixed(start, self.decimals)} {_fixed(end - start, self.decimals)}"
        return f"{id} {self.channel} {times} {self.label(segment)}\n"

    def loads(self, text: str, id: str) -> Alignment:
        """Read one utterance: ``id``, or the only one in the text.

        Raises:
            FormatError: a line is not CTM, or there are several utterances and none of them is ``id``.
        """
        found = {alignment.id: alignment for alignment in self.loads_all(text)}
        if _id(id) in found:
            only = found[_id(id)]
            return Alignment(id, only.duration, only.tiers)
        if len(found) > 1:
            raise FormatError(
                f"expected one utterance, or one named {id!r}; got {len(found)}, from "
                f"{next(iter(found))!r} on: read them with loads_all."
            )
        return next(iter(found.values()), Alignment(id, 0.0, (build_tier(self.tier, []),)))

    def loads_all(self, text: str) -> list[Alignment]:
        """Read all utterances, in order of their first lines.

        Raises:
            FormatError: a line is not CTM, or segments of an utterance overlap; the message names the line.
        """
        utterances: dict[str, dict[str, list[Row]]] = {}
        decimals = 2
        for number, line in numbered_lines(text):
            if line.startswith(";;"):
                continue
            fields = line.split()
            if len(fields) < 5:
                raise FormatError(
                    f"line {number}: expected 'id channel start duration label [confidence]'; got {line!r}."
                )
            decimals = max(decimals, _decimals(fields[2]), _decimals(fields[3]))
            utterances.setdefault(fields[0], {}).setdefault(fields[1], []).append(_row(fields, number))
        # starts and durations are rounded separately, so an end may be 1.5 units of the last digit late
        slack = 1.5 * 10.0**-decimals
        return [
            self._alignment(id if len(channels) == 1 else f"{id}:{channel}", rows, slack)
            for id, channels in utterances.items()
            for channel, rows in channels.items()
        ]

    def _alignment(self, id: str, rows: list[Row], slack_s: float) -> Alignment:
        tier = build_tier(self.tier, rows, slack_s)
        return Alignment(id, tier.segments[-1].end, (tier,))


def _row(fields: list[str], line: int) -> Row:
    start = parse_seconds(fields[2], line, "a start")
    parse_seconds(fields[3], line, "a duration")
    end = float(Decimal(fields[2]) + Decimal(fields[3]))
    confidence = None
    if len(fields) > 5 and fields[5].upper() not in ("NA", "-"):
        try:
            confidence = float(fields[5])
        except ValueError:
            confidence = math.nan
        if not 0 <= confidence <= 1 + _ROUNDING:
            raise FormatError(f"line {line}: expected a confidence from 0 to 1, or NA; got {fields[5]!r}.")
        confidence = min(confidence, 1.0)
    return Row(line, fields[4], start, max(start, end), confidence=confidence)


def _confidence(segment: Segment) -> float | None:
    if segment.confidence is not None or segment.score is None:
        return segment.confidence
    return math.exp(min(0.0, segment.score))


def _decimals(field: str) -> int:
    try:
        exponent = Decimal(field).as_tuple().exponent
    except InvalidOperation:
        return 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _fixed(ticks: int, decimals: int) -> str:
    whole, part = divmod(ticks, 10**decimals)
    return f"{whole}.{part:0{decimals}d}"


def word_of(text: str) -> str:
    """Return text without white space, as one field of a line."""
    return re.sub(r"\s", "_", text)


def _id(id: str) -> str:
    # a line that starts with ;; is a comment
    return re.sub(r"^;", "_", word_of(id)) or "_"
