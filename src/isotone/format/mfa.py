"""JSON and CSV as the Montreal Forced Aligner writes them."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from isotone.alignment import Alignment, AlignmentError, Tier
from isotone.format.reading import (
    ForeignFileError,
    FormatError,
    Row,
    build_tier,
    parse_json,
    parse_seconds,
)
from isotone.format.tier_names import parse_name, speaker_of
from isotone.interfaces import Format

_HEADER = ["Begin", "End", "Label", "Type", "Speaker"]


class MFAJSONFormat(Format):
    """JSON of the Montreal Forced Aligner: ``{"start", "end", "tiers": {name: {"type", "entries"}}}``.

    An entry is ``[start, end, label]``, in seconds. Silences (empty labels) have none. Ids and scores are not kept.
    """

    suffix = ".json"

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        tiers = {
            tier.name: {
                "type": "interval",
                "entries": [[float(s.start), float(s.end), str(s.label)] for s in tier if s.label],
            }
            for tier in alignment.tiers
        }
        content = {"start": 0, "end": float(alignment.duration), "tiers": tiers}
        return json.dumps(content, ensure_ascii=False, indent=4) + "\n"

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file.

        Raises:
            FormatError: not such JSON, or entries that overlap; the message names the tier.
        """
        found = parse_json(text)
        if not isinstance(found, dict) or not isinstance(found.get("tiers"), dict) or "format" in found:
            raise ForeignFileError('expected an object with "start", "end" and "tiers"; got other JSON.')
        tiers = [_tier(name, value) for name, value in found["tiers"].items()]
        last = max((t.segments[-1].end for t in tiers if t.segments), default=0.0)
        end = found.get("end")
        duration = float(end) if isinstance(end, int | float) and not isinstance(end, bool) else last
        try:
            return Alignment(id, duration, tuple(tiers))
        except AlignmentError as error:
            raise FormatError(str(error)) from None


def _tier(name: str, value: Any) -> Tier:
    entries = value.get("entries") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise FormatError(f"tier {name!r}: expected 'entries', a list.")
    rows = []
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, list) or len(entry) != 3 or not isinstance(entry[2], str):
            raise FormatError(
                f"tier {name!r}, entry {number}: expected [start, end, label]; got {entry!r:.60}."
            )
        start, end = (parse_seconds(str(x), number, what) for x, what in zip(entry, ("a start", "an end")))
        if entry[2]:
            rows.append(Row(number, entry[2], start, end))
    try:
        return build_tier(name, rows)
    except FormatError as error:
        raise FormatError(str(error).replace("line ", "entry ", 1)) from None


class MFACSVFormat(Format):
    """CSV of the Montreal Forced Aligner: ``Begin,End,Label,Type,Speaker``, with types ``words`` and ``phones``.

    A tier ``A - words`` has the type ``words`` and the speaker A; where a tier has no speaker, the field has the id.
    Silences (empty labels) have no line. Scores, empty tiers and the length of the audio are not kept: when read, the
    audio ends with the last segment.
    """

    suffix = ".csv"

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_HEADER)
        for tier in alignment.tiers:
            speaker = speaker_of(tier.name)
            kind = parse_name(tier.name).kind if speaker else tier.name
            for s in tier:
                if s.label:
                    writer.writerow([float(s.start), float(s.end), s.label, kind, speaker or alignment.id])
        return out.getvalue()

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file; a speaker who is alone has no part in the names of tiers.

        Raises:
            FormatError: another header, or a line that is not a segment; the message names the line.
        """
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        found: dict[tuple[str, str], list[Row]] = {}
        try:
            header = next(reader, [])
            if header != _HEADER:
                raise ForeignFileError(
                    f"line 1: expected the header {','.join(_HEADER)!r}; got {','.join(header)!r:.80}."
                )
            for fields in filter(None, reader):
                if len(fields) != len(_HEADER):
                    raise FormatError(
                        f"line {reader.line_num}: expected {len(_HEADER)} fields; got {len(fields)}."
                    )
                start = parse_seconds(fields[0], reader.line_num, "a start")
                end = parse_seconds(fields[1], reader.line_num, "an end")
                row = Row(reader.line_num, fields[2], start, end)
                found.setdefault((fields[4], fields[3]), []).append(row)
        except csv.Error as error:
            raise FormatError(f"line {reader.line_num}: expected CSV; {error}.") from None
        several = len({speaker for speaker, _ in found}) > 1
        tiers = [build_tier(f"{s} - {kind}" if several else kind, rows) for (s, kind), rows in found.items()]
        try:
            return Alignment(id, max((t.segments[-1].end for t in tiers), default=0.0), tuple(tiers))
        except AlignmentError as error:
            raise FormatError(str(error)) from None
