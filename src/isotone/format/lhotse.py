"""Supervisions of lhotse, with words and phones as alignments."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from isotone.alignment import Alignment, AlignmentError, Segment, Tier
from isotone.format.reading import ForeignFileError, FormatError, Row, build_tier, numbered_lines, parse_json
from isotone.format.tier_names import parse_name, speaker_of
from isotone.interfaces import Format

#: Names of tiers by lhotse's names of alignments.
_NAMES = {"word": "words", "phone": "phones"}
_KINDS = {name: kind for kind, name in _NAMES.items()}


class LhotseFormat(Format):
    """JSON lines of lhotse: a ``SupervisionSegment`` per speaker, whose ``alignment`` has all tiers.

    Tiers of words and phones are the alignments ``word`` and ``phone``. An item is ``[symbol, start, duration,
    score]``: seconds from the start of the recording, and the confidence. The recording's id is the alignment's.
    Silence (empty labels) and the length of the audio are not kept.

    Args:
        language: Language of the supervisions, as lhotse names it, such as ``"English"``; None: not said.
    """

    suffix = ".supervisions.jsonl"

    def __init__(self, *, language: str | None = None) -> None:
        self.language = language

    def dumps(self, alignment: Alignment) -> str:
        """Return the lines of the utterance."""
        voices: dict[str, dict[str, Tier]] = {}
        for tier in alignment.tiers:
            speaker = speaker_of(tier.name)
            kind = parse_name(tier.name).kind if speaker else tier.name
            voices.setdefault(speaker, {})[_KINDS.get(kind, kind)] = tier
        rows = [self._row(alignment, speaker, tiers) for speaker, tiers in voices.items()]
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)

    def loads(self, text: str, id: str) -> Alignment:
        """Read the supervisions of one recording: ``id``, or the only one.

        Raises:
            FormatError: a line is no supervision, there are several recordings and none is ``id``, or items overlap.
        """
        rows = [(number, _supervision(line, number)) for number, line in numbered_lines(text)]
        recordings = {row["recording_id"] for _, row in rows}
        if id not in recordings and len(recordings) > 1:
            raise FormatError(
                f"expected the supervisions of one recording, or of {id!r}; got {len(recordings)}."
            )
        rows = [(n, row) for n, row in rows if row["recording_id"] == id or len(recordings) == 1]
        speakers = {row.get("speaker") for _, row in rows}
        found: dict[str, list[Row]] = {}
        for number, row in rows:
            for kind, items in row["alignment"].items():
                named = _NAMES.get(kind, kind)
                name = f"{row.get('speaker') or 'unknown'} - {named}" if len(speakers) > 1 else named
                found.setdefault(name, []).extend(_items(items, number))
        try:
            tiers = [build_tier(name, sorted(own, key=lambda r: r.start)) for name, own in found.items()]
            end = max((t.segments[-1].end for t in tiers if t.segments), default=0.0)
            return Alignment(id, end, tuple(tiers))
        except AlignmentError as error:
            raise FormatError(str(error)) from None

    def _row(self, alignment: Alignment, speaker: str, tiers: Mapping[str, Tier]) -> dict[str, Any]:
        spoken = {kind: [s for s in tier if s.label] for kind, tier in tiers.items()}
        every = [s for segments in spoken.values() for s in segments]
        start = min((s.start for s in every), default=0.0)
        words = spoken.get("word", next(iter(spoken.values())))
        row: dict[str, Any] = {
            "id": f"{alignment.id}-{speaker}" if speaker else alignment.id,
            "recording_id": alignment.id,
            "start": float(start),
            "duration": _round(max((s.end for s in every), default=alignment.duration) - start),
            "channel": 0,
            "text": " ".join(s.label for s in words),
        }
        row |= {"language": self.language} if self.language is not None else {}
        row |= {"speaker": speaker} if speaker else {}
        return row | {"alignment": {kind: list(map(_item, segments)) for kind, segments in spoken.items()}}


def _item(segment: Segment) -> list[Any]:
    item: list[Any] = [segment.label, float(segment.start), _round(segment.end - segment.start)]
    return [*item, None if segment.confidence is None else float(segment.confidence)]


def _round(seconds: float) -> float:
    # as lhotse rounds times
    return round(float(seconds), 8)


def _supervision(line: str, number: int) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except FormatError as error:
        raise FormatError(str(error).replace("line 1", f"line {number}", 1)) from None
    if not isinstance(row, dict) or not isinstance(row.get("recording_id"), str):
        raise ForeignFileError(f"line {number}: expected a supervision of lhotse, with its recording_id.")
    row["alignment"] = row.get("alignment") or {}
    if not isinstance(row["alignment"], dict):
        raise FormatError(f"line {number}: expected 'alignment', an object; got {row['alignment']!r:.60}.")
    if row.get("speaker") is not None and not isinstance(row["speaker"], str):
        raise FormatError(f"line {number}: expected 'speaker', a text; got {row['speaker']!r:.60}.")
    return row


def _items(items: Any, number: int) -> Iterator[Row]:
    if not isinstance(items, list):
        raise FormatError(f"line {number}: expected a list of alignment items; got {items!r:.60}.")
    for item in items:
        if not isinstance(item, list) or len(item) not in (3, 4) or not isinstance(item[0], str):
            raise FormatError(f"line {number}: expected [symbol, start, duration, score]; got {item!r:.60}.")
        numbers = [x for x in item[1:] if x is not None]
        if len(numbers) < 2 or any(isinstance(x, bool) or not isinstance(x, int | float) for x in numbers):
            raise FormatError(f"line {number}: expected numbers in {item!r:.60}.")
        start, duration = float(item[1]), float(item[2])
        if not (start >= 0 and duration >= 0):
            raise FormatError(f"line {number}: expected times of 0 s or more in {item!r:.60}.")
        score = float(item[3]) if len(item) > 3 and item[3] is not None else None
        if item[0]:
            yield Row(number, item[0], start, _round(start + duration), confidence=score)
