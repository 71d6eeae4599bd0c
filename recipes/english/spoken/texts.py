"""Sentences to be spoken: those of the package, of transcripts, and rows of random words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from isotone.corpus.synth import sentences

# Words per sentence that is cut from longer texts.
_LEAST, _MOST = 3, 12


def spoken_sentences(transcripts: Sequence[Path], rng: np.random.Generator) -> Iterator[str]:
    """Iterate without end over sentences in random order.

    Six of ten are cut from the transcripts, three are of the package; one is a row of the transcripts' words in random
    order, for sequences of sounds that sentences seldom have.

    Args:
        transcripts: Files of plain text, LibriSpeech's ``.trans.txt`` or LJSpeech's ``metadata.csv``.
        rng: Random numbers.
    """
    lines = [line for path in transcripts for line in _lines(path)]
    words = sorted({word for line in lines for word in line.split()})
    own = sentences()
    while True:
        kind = rng.random()
        if lines and kind < 0.6:
            yield _cut(lines[rng.integers(len(lines))].split(), rng)
        elif words and kind < 0.7:
            yield " ".join(words[i] for i in rng.integers(len(words), size=rng.integers(_LEAST, 8)))
        else:
            yield own[rng.integers(len(own))]


def transcripts_in(speech: Sequence[Path]) -> list[Path]:
    """List the transcripts of LibriSpeech and of LJSpeech below folders."""
    names = ("*.trans.txt", "metadata.csv")
    return [p for root in speech for p in sorted(q for name in names for q in root.rglob(name))]


def _lines(path: Path) -> Iterator[str]:
    for line in path.read_text("utf-8").splitlines():
        if path.name.endswith(".trans.txt"):
            line = line.partition(" ")[2]
        elif path.suffix == ".csv":
            line = line.split("|")[-1]
        text = re.sub(r"[^A-Za-z' ]+", " ", line).lower().strip()
        if len(text.split()) >= _LEAST and not re.search(r"\d", line):
            yield re.sub(r"\s+", " ", text)


def _cut(words: list[str], rng: np.random.Generator) -> str:
    size = int(rng.integers(_LEAST, _MOST + 1))
    start = int(rng.integers(max(1, len(words) - size + 1)))
    return " ".join(words[start : start + size])
