"""Comma-separated values: one line per segment."""

from __future__ import annotations

import csv
import io

from isotone.alignment import Alignment, AlignmentError, Margin
from isotone.format.reading import ForeignFileError, FormatError, Row, build_tier, parse_seconds
from isotone.interfaces import Format

_HEADER = ["tier", "label", "start", "end", "score", "confidence"]
# header of files from before there were confidences
_OLD_HEADER = _HEADER[:-1]
# where margins are known
_MARGINS = ["before", "after", "near"]
_LONG_HEADER = [*_HEADER, *(f"{side}_{part}" for side in ("start", "end") for part in _MARGINS)]


class CSVFormat(Format):
    """CSV with the columns ``tier,label,start,end,score,confidence``: all tiers, times in seconds, exact numbers.

    Quotes, commas and line ends in labels are quoted as in RFC 4180. An unknown score or confidence is an empty field;
    files without the last column are read as well. Where margins are known, six more columns have those of every start
    and end (:class:`isotone.alignment.Margin`). The utterance's score, the length of the audio and tiers without
    segments are not kept: when read, the audio ends with the last segment.
    """

    suffix = ".csv"

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        out = io.StringIO()
        # all texts are quoted: otherwise a lone carriage return would not be
        writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        margins = alignment.has_margins
        out.write(",".join(_LONG_HEADER if margins else _HEADER) + "\n")
        for tier in alignment.tiers:
            for s in tier:
                sides = (s.start_margin, s.end_margin) if margins else ()
                known = (x for m in sides for x in ((m.before, m.after, m.near) if m else (None,) * 3))
                numbers = ("" if x is None else float(x) for x in (s.score, s.confidence, *known))
                writer.writerow([tier.name, str(s.label), float(s.start), float(s.end), *numbers])
        return out.getvalue()

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file. Tiers are in order of their first lines.

        Raises:
            FormatError: another header, a line that is not a segment, or segments that overlap; the message names the
                line.
        """
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        tiers: dict[str, list[Row]] = {}
        try:
            header = next(reader, [])
            if header not in (_HEADER, _OLD_HEADER, _LONG_HEADER):
                raise ForeignFileError(
                    f"line 1: expected the header {','.join(_HEADER)!r}; got {','.join(header)!r}."
                )
            for fields in reader:
                if fields:
                    tiers.setdefault(fields[0], []).append(_row(fields, header, reader.line_num))
        except csv.Error as error:
            raise FormatError(f"line {reader.line_num}: expected CSV; {error}.") from None
        built = tuple(build_tier(name, rows) for name, rows in tiers.items())
        try:
            return Alignment(id, max((t.segments[-1].end for t in built), default=0.0), built)
        except AlignmentError as error:
            raise FormatError(str(error)) from None


def _row(fields: list[str], header: list[str], line: int) -> Row:
    if len(fields) != len(header):
        raise FormatError(
            f"line {line}: expected {len(header)} fields, {','.join(header)}; got {len(fields)}."
        )
    _, label, start, end, *rest = fields
    numbers = [_number(field, name, line) for field, name in zip(rest, header[4:])]
    times = parse_seconds(start, line, "a start"), parse_seconds(end, line, "an end")
    score, confidence = [*numbers, None][:2]
    sides = (_margin(numbers[i : i + 3], line) for i in (2, 5))
    return Row(line, label, *times, score, confidence, *sides)


def _margin(numbers: list[float | None], line: int) -> Margin | None:
    """Return a margin; None where none of its numbers is known."""
    known = [x for x in numbers if x is not None]
    if not known:
        return None
    if len(known) < len(numbers):
        raise FormatError(f"line {line}: expected three numbers of a margin, or none; got {len(known)}.")
    try:
        return Margin(*known)
    except AlignmentError as error:
        raise FormatError(f"line {line}: {error}") from None


def _number(field: str, name: str, line: int) -> float | None:
    try:
        return float(field) if field else None
    except ValueError:
        raise FormatError(f"line {line}: expected a {name}, a number or nothing; got {field!r}.") from None
