"""JSON as WhisperX writes it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from isotone.alignment import Alignment, AlignmentError
from isotone.format.cues import Layout, make_cues
from isotone.format.reading import ForeignFileError, FormatError, Row, build_tier, parse_json
from isotone.format.ticks import to_ticks
from isotone.format.tier_names import voices
from isotone.interfaces import Format

#: A segment is a sentence, or what lies between silences; of long sentences a part.
_SEGMENTS = Layout(
    max_chars=400, max_lines=1, max_gap_s=1.0, max_s=30.0, reading_speed=0, unsaid=False, star="*"
)


class WhisperXFormat(Format):
    """JSON with the keys of WhisperX: ``segments`` with ``words``, ``word_segments`` and ``language``.

    Times are seconds of three decimals. A word's ``score`` is its confidence (0 to 1), where known; with several
    speakers, words and segments have a ``speaker``. Ids, phones and the length of the audio are not kept. When read,
    words that WhisperX could not align, which have no times, are left out, and those that overlap are cut where the
    next one begins.

    Args:
        language: ISO 639 code of the language; None: not said.
        tier: The tier of words, and the name of the tier that is read.
    """

    suffix = ".json"

    def __init__(self, *, language: str | None = None, tier: str = "words") -> None:
        self.language = language
        self.tier = tier

    def dumps(self, alignment: Alignment) -> str:
        """Return the text of the file.

        Raises:
            KeyError: the alignment does not have the tier.
        """
        segments = []
        for cue in make_cues(alignment, self.tier, _SEGMENTS):
            segments.append((cue.speaker, len(cue.words)))
        words = {
            speaker: list(_words(alignment, self.tier, speaker)) for speaker in voices(alignment, self.tier)
        }
        rows: list[dict[str, Any]] = []
        for speaker, count in segments:
            own, words[speaker] = words[speaker][:count], words[speaker][count:]
            row = {"start": own[0]["start"], "end": own[-1]["end"], "text": " ".join(w["word"] for w in own)}
            rows.append({**row, "words": own, **({"speaker": speaker} if speaker else {})})
        content: dict[str, Any] = {
            "segments": rows,
            "word_segments": [w for row in rows for w in row["words"]],
        }
        if self.language is not None:
            content["language"] = self.language
        return json.dumps(content, ensure_ascii=False, indent=1) + "\n"

    def loads(self, text: str, id: str) -> Alignment:
        """Read the text of a file; with several speakers there is a tier of words for each.

        Raises:
            FormatError: not such JSON, or a word that ends before it starts; the message names the place.
        """
        content = parse_json(text)
        if not isinstance(content, dict) or not isinstance(content.get("segments"), list):
            raise ForeignFileError(
                "expected an object with 'segments', as WhisperX writes it; got other JSON."
            )
        rows: dict[str, list[Row]] = {}
        for number, segment in enumerate(content["segments"], 1):
            for word in _list(segment, "words", f"segment {number}"):
                speaker, row = _row(word, number)
                if row is not None:
                    rows.setdefault(speaker, []).append(row)
        names = {s: f"{s or 'unknown'} - {self.tier}" if len(rows) > 1 else self.tier for s in rows or [""]}
        try:
            own = {s: sorted(rows.get(s, []), key=lambda row: row.start) for s in names}
            tiers = [build_tier(names[s], own[s], math.inf) for s in names]
            end = max((t.segments[-1].end for t in tiers if t.segments), default=0.0)
            return Alignment(id, end, tuple(tiers))
        except FormatError as error:
            raise FormatError(str(error).replace("line ", "segment ", 1)) from None
        except AlignmentError as error:
            raise FormatError(str(error)) from None


def _words(alignment: Alignment, tier: str, speaker: str) -> Iterator[dict[str, Any]]:
    spoken = [s for s in voices(alignment, tier)[speaker] if s.label.split()]
    for s, (start, end) in zip(spoken, to_ticks(spoken, alignment.duration, 1000, least=1)):
        row: dict[str, Any] = {"word": " ".join(s.label.split()), "start": start / 1000, "end": end / 1000}
        if s.confidence is not None:
            row["score"] = round(float(s.confidence), 3)
        yield row | ({"speaker": speaker} if speaker else {})


def _row(word: Any, segment: int) -> tuple[str, Row | None]:
    """Return the speaker and the row of a word; no row for one without times."""
    if not isinstance(word, Mapping) or not isinstance(word.get("word"), str):
        raise FormatError(f"segment {segment}: expected words with 'word', a text; got {word!r:.60}.")
    numbers = [word.get(key) for key in ("start", "end", "score")]
    for key, value in zip(("start", "end", "score"), numbers):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            raise FormatError(
                f"segment {segment}: expected {key!r}, a number of 0 or more; got {value!r:.60}."
            )
    start, end, score = (None if n is None else float(n) for n in numbers)
    speaker = str(word.get("speaker") or "")
    if start is None or end is None:
        return speaker, None
    return speaker, Row(segment, word["word"], start, end, confidence=score)


def _list(record: Any, key: str, where: str) -> list[Any]:
    found = record.get(key, []) if isinstance(record, Mapping) else None
    if not isinstance(found, list):
        raise FormatError(f"{where}: expected {key!r}, a list.")
    return found
