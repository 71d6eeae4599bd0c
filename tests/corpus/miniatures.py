"""Miniatures of corpora in the files of the real ones, for tests."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
from datasets import Audio, Dataset

from isotone.corpus.digit_recordings import SAMPLE_RATE


def record(path: Path, seconds: float = 0.5, **texts: str) -> None:
    """Write a recording, and files beside it: suffix to contents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(round(16000 * seconds)), 16000)
    for suffix, text in texts.items():
        path.with_suffix(f".{suffix}").write_text(text, encoding="utf-8")


def chapter(root: Path, part: str, name: str, lines: dict[str, str], seconds: float = 0.25) -> Path:
    """Write a chapter with a recording for every line."""
    speaker, number = name.split("-")
    folder = root / part / speaker / number
    folder.mkdir(parents=True)
    for i, id in enumerate(lines):
        soundfile.write(folder / f"{id}.flac", np.zeros(round(16000 * seconds) + i), 16000)
    (folder / f"{name}.trans.txt").write_text("".join(f"{id} {text}\n" for id, text in lines.items()))
    return folder


HEAD = '<?xml version="1.0" encoding="ISO-8859-1" standalone="yes"?>\n'
ROOT = '<nite:root nite:id="x" xmlns:nite="http://nite.sourceforge.net/">'

# id, element, attributes, text: an example of everything in the corpus
WORDS = [
    ("words0", "w", 'starttime="1.00" endtime="1.30"', "Hi"),
    ("words1", "w", 'starttime="1.30" endtime="1.30" punc="true"', ","),
    ("words2", "w", 'starttime="1.30" endtime="1.62"', "I&#39;m"),
    ("words3", "w", 'starttime="1.62" endtime="1.90" trunc="true"', "Dav"),
    ("words4", "vocalsound", 'starttime="1.90" endtime="2.10" type="laugh"', ""),
    ("words5", "w", 'starttime="2.10" endtime="2.60"', "T_V_"),
    ("words6", "w", 'starttime="2.60" endtime="2.60" punc="true"', "."),
    ("words7", "w", 'starttime="4.00" endtime="4.40"', "Caf\u00e9"),
    ("words8", "w", "", "yes"),
    ("words9", "gap", 'starttime="5.00" endtime="5.50"', ""),
    ("disfmarker0", "disfmarker", 'starttime="5.60" endtime="5.60"', ""),
    ("words10", "w", 'starttime="7.00" endtime="7.20"', "-"),
    ("words11", "w", 'starttime="7.90" endtime="8.40"', "Right"),
]
TURNS = [
    (0.9, 2.7, "words0", "words6"),
    (3.9, 5.0, "words7", "words8"),
    (5.0, 5.7, "words9", "disfmarker0"),
    (6.9, 8.2, "words10", "words11"),
]


def write_nxt(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{HEAD}{ROOT}\n{body}\n</nite:root>\n", encoding="iso-8859-1")


def annotate(
    folder: Path,
    name: str,
    words: list[tuple[str, str, str, str]] = WORDS,
    turns: list[tuple[float, float, str, str]] = TURNS,
) -> None:
    """Write the two files of a speaker in a meeting."""
    items = "\n".join(f'<{tag} nite:id="{name}.{id}" {more}>{text}</{tag}>' for id, tag, more, text in words)
    write_nxt(folder / "words" / f"{name}.words.xml", items)
    segments = ""
    for i, (start, end, first, last) in enumerate(turns):
        span = f"id({name}.{first})" + ("" if first == last else f"..id({name}.{last})")
        segments += (
            f'<segment nite:id="{name}.sync.{i}" channel="0" transcriber_start="{start}" transcriber_end="{end}">\n'
            f'<nite:child href="{name}.words.xml#{span}"/>\n</segment>\n'
        )
    write_nxt(folder / "segments" / f"{name}.segments.xml", segments)


def headset(root: Path, meeting: str, number: int, seconds: float = 8.0) -> Path:
    path = root / meeting / "audio" / f"{meeting}.Headset-{number}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.zeros(round(16000 * seconds)), 16000)
    return path


def speak_digits(folder: Path, seed: int = 0, indices: Iterable[int] = range(12)) -> Path:
    """Write a miniature of the data set: two speakers; every word is a different noise with silence at both ends."""
    rng = np.random.default_rng(seed)
    (folder / "recordings").mkdir(parents=True)
    for speaker in ("ann", "bob"):
        for digit in range(10):
            for index in indices:
                word = rng.uniform(0.1, 0.3, int(rng.integers(800, 2400))) * rng.choice([-1, 1])
                word[1::2] *= -1
                silent = np.zeros(80 * int(rng.integers(0, 4)))
                path = folder / "recordings" / f"{digit}_{speaker}_{index}.wav"
                soundfile.write(path, np.concatenate([silent, word, silent]), SAMPLE_RATE, subtype="PCM_16")
    return folder


def flac(samples: int) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.full(samples, 0.25), 16000, format="FLAC")
    return file.getvalue()


def hub_rows(count: int = 3, **names: str) -> list[dict[str, Any]]:
    """Return rows with the columns of LibriSpeech on the hub, or with other names."""
    return [
        {
            names.get("audio", "audio"): {"bytes": flac(8000 + i), "path": f"7-1-{i:04d}.flac"},
            names.get("text", "text"): f"LINE {'ABC'[i]}",
            "speaker_id": 7,
            "id": f"7-1-{i:04d}",
        }
        for i in range(count)
    ]


def hub_dataset(values: list[dict[str, Any]], audio: str = "audio") -> Dataset:
    """Return a data set with a column of type audio, without decoding any audio."""
    found = Dataset.from_list(values)
    return found.cast_column(audio, Audio(16000, decode=False)).cast_column(audio, Audio(16000))
