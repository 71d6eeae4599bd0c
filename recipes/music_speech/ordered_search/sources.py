"""Recordings that the experiments are made of: a folder of audio, or synthetic ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from isotone.audio import is_audio, load
from ordered_search import synthesis
from ordered_search.settings import Data
from ordered_search.synthesis import Audio


def recordings(data: Data) -> list[tuple[str, Audio]]:
    """Load or synthesise all recordings of the configuration's ``data``: names and samples.

    Raises:
        ValueError: an unknown source or kind, or no folder given.
        FileNotFoundError: no such folder, or no audio in it.
    """
    makers = {"speech": synthesis.speech, "music": synthesis.music}
    if data.source not in ("synthetic", "folder") or data.kind not in makers:
        raise ValueError(
            "Expected data.source 'synthetic' or 'folder' and data.kind 'speech' or 'music', or data=digits; got "
            f"{data.source!r} and {data.kind!r}."
        )
    if data.source == "synthetic":
        return list(makers[data.kind](data.recordings, data.recording_s, data.sample_rate, data.seed))
    found = audio_files(data)
    read = ((path.relative_to(data.root).as_posix(), load(path, data.sample_rate)) for path in found)
    return joined(read, round(data.join_s * data.sample_rate))


def audio_files(data: Data) -> list[Path]:
    """List the audio files of the folder that the configuration's ``data`` names, in order.

    Raises:
        ValueError: no folder given.
        FileNotFoundError: no such folder, or no audio in it.
    """
    if data.root is None:
        raise ValueError("A folder of audio has to be given: data.root=FOLDER.")
    root = Path(data.root)
    found = sorted(p for p in root.rglob("*") if is_audio(p))
    if not found:
        raise FileNotFoundError(f"{root}: no audio files there. Give a folder of recordings as data.root.")
    return found


def joined(files: Iterable[tuple[str, Audio]], samples: int) -> list[tuple[str, Audio]]:
    """Join consecutive files until a recording has so many samples; 0 leaves files as they are."""
    out: list[tuple[str, Audio]] = []
    names: list[str] = []
    parts: list[Audio] = []
    for name, audio in files:
        names.append(name)
        parts.append(audio)
        if sum(map(len, parts)) >= samples:
            out.append(("+".join(names), np.concatenate(parts)))
            names, parts = [], []
    if parts:
        out.append(("+".join(names), np.concatenate(parts)))
    return out
