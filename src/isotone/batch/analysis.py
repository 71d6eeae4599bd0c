"""Tables on a corpus as the Montreal Forced Aligner writes them: a row per recording, and words in no dictionary.

The columns are MFA's; docs/from-mfa.md says how each is measured here.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotone.alignment import Alignment
from isotone.audio import Samples, blocks
from isotone.batch.ledger import Entry
from isotone.text.tokenizer import Tokenizer
from isotone.text.transcript import STAR_NUMBER, Transcript

#: Names of the tables.
ANALYSIS, OOVS, UTTERANCE_OOVS = "alignment_analysis.csv", "oovs_found.txt", "utterance_oovs.txt"

_COLUMNS = (
    "file", "begin", "end", "speaker", "overall_log_likelihood", "speech_log_likelihood", "phone_duration_deviation",
    "snr",
)  # fmt: skip

#: Least seconds of speech and of silence, and least segments of a phone, to measure by.
LEAST_S, LEAST_SEGMENTS = 0.05, 3


def measured(
    alignment: Alignment, samples: Samples, sample_rate: int, oovs: Sequence[str] = ()
) -> dict[str, Any]:
    """Measure one alignment, as plain values for JSON.

    Args:
        alignment: Tiers of words, if any, and of the model's units.
        samples: ``(N,)`` the recording.
        sample_rate: Hz.
        oovs: Its words that no dictionary has.
    """
    units = [segment for segment in alignment.tiers[-1] if segment.score is not None]
    seconds = sum(unit.duration for unit in units)
    speech = sum(unit.duration * (unit.score or 0.0) for unit in units) / seconds if seconds else None
    # one by one: lists of hours of phones take more memory than all else
    phones = (json.dumps((unit.label, round(unit.duration, 4)), ensure_ascii=False) for unit in units)
    return {
        "seconds": alignment.duration,
        "speech": speech,
        "snr": snr(samples, [(unit.start, unit.end) for unit in units], sample_rate),
        "phones": f"[{', '.join(phones)}]",
        "oovs": list(oovs),
    }


def snr(samples: Samples, spans: Sequence[tuple[float, float]], sample_rate: int) -> float | None:
    """Compute the power within spans over the power outside, dB; None with under 50 ms or no power of either."""
    edges = np.array(
        [(round(start * sample_rate), round(end * sample_rate)) for start, end in spans], int
    ).reshape(-1, 2)
    sizes, energies = np.zeros(2), np.zeros(2)
    for first, block in blocks(samples):
        inside = np.zeros(len(block), bool)
        for start, end in edges[(edges[:, 0] < first + len(block)) & (edges[:, 1] > first)] - first:
            inside[max(0, start) : end] = True
        for row, own in enumerate((inside, ~inside)):
            sizes[row] += own.sum()
            energies[row] += np.square(block[own], dtype=np.float64).sum()
    if sizes.min() < LEAST_S * sample_rate:
        return None
    speech, rest = (energies / sizes).tolist()
    return 10 * math.log10(speech / rest) if speech > 0 and rest > 0 else None


def oovs_of(tokenizer: Tokenizer, transcript: Transcript) -> list[str]:
    """List the words of a transcript that no dictionary has: read by their letters, or not pronounced at all."""
    starred = {
        owner
        for token, owner in zip(transcript.tokens, transcript.token_words)
        if token == STAR_NUMBER and owner is not None
    }
    unsaid = [transcript.words[owner].text for owner in sorted(starred)]
    letters = [text for text in unsaid if any(map(str.isalnum, text))]
    return list(dict.fromkeys([*tokenizer.guessed(transcript.words), *letters]))


def tables(entries: Iterable[Entry], speaker_characters: int = 0) -> dict[str, bytes]:
    """Make the tables of recordings that were aligned.

    Args:
        entries: Entries of the ledger, in order.
        speaker_characters: Number of characters of a recording's name that name its speaker; 0: its folder does.

    Returns:
        Contents by name; empty for a table without rows.
    """
    known = ((entry, entry.analysis or {}) for entry in entries if not entry.error)
    rows = [(entry, analysis) for entry, analysis in known if "speech" in analysis]
    deviations = _deviations({entry.id: analysis for entry, analysis in rows})
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    lines, found = [], set()
    for entry, analysis in rows:
        speaker, end = speaker_of(entry, speaker_characters), analysis["seconds"]
        numbers = (entry.score, analysis["speech"], deviations[entry.id], analysis["snr"])
        writer.writerow([entry.id, "0.0", f"{end:.4f}", speaker, *map(_cell, numbers)])
        if oovs := analysis["oovs"]:
            lines.append(f"{entry.id}, {speaker}: 0.0-{end:.4f}: {', '.join(oovs)}\n")
            found.update(oovs)
    return {
        ANALYSIS: file.getvalue().encode() if rows else b"",
        OOVS: "".join(f"{word}\n" for word in sorted(found)).encode(),
        UTTERANCE_OOVS: "".join(lines).encode(),
    }


def speaker_of(entry: Entry, characters: int) -> str:
    """Return the speaker of a recording: the first characters of its name, or (0) the name of its folder."""
    path = Path(entry.source)
    return path.stem[:characters] if characters else path.parent.name


def _deviations(analyses: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Compute by recording the mean of |z| over its phones, z of log durations among all segments of the phone."""
    logs: dict[str, dict[str, list[float]]] = {}
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for id, analysis in analyses.items():
        own: dict[str, list[float]] = defaultdict(list)
        for label, seconds in json.loads(analysis["phones"]):
            if seconds > 0:
                own[label].append(math.log(seconds))
        logs[id] = own
        for label, values in own.items():
            total = sums[label]
            total[0] += len(values)
            total[1] += sum(values)
            total[2] += sum(value * value for value in values)
    known = {
        label: (mean, deviation)
        for label, (count, first, second) in sums.items()
        if count >= LEAST_SEGMENTS
        and (deviation := math.sqrt(max(0.0, second / count - (mean := first / count) ** 2))) > 1e-6
    }
    found: dict[str, float | None] = {}
    for id, own in logs.items():
        z = [
            abs(v - known[label][0]) / known[label][1]
            for label, vs in own.items()
            if label in known
            for v in vs
        ]
        found[id] = sum(z) / len(z) if z else None
    return found


def _cell(number: float | None) -> str:
    return "" if number is None or not math.isfinite(number) else f"{number:.4f}"
