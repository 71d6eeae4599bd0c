"""Recordings and transcripts among the paths that a command is given, and which belong together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from isotone.audio import is_audio
from isotone.batch.inputs import TEXT_SUFFIXES, absolute, find_audio
from isotone.transcripts.kaldi import is_data_folder
from isotone.transcripts.kinds import KINDS
from isotone.transcripts.reading import MANY

_LISTED = 5


@dataclass(frozen=True)
class Given:
    """The paths that a command is given, sorted.

    Attributes:
        audio: Recordings and folders, as given.
        transcripts: The transcript of each recording that was given one, by :func:`isotone.batch.inputs.absolute`.
    """

    audio: list[Path]
    transcripts: Mapping[Path, Path] = field(default_factory=dict)


def is_transcript(path: Path) -> bool:
    """Tell by its name if a path that is no folder is a transcript: text, subtitles, or another file with words."""
    suffix = path.suffix.lower()
    known = suffix in TEXT_SUFFIXES or suffix in KINDS or path.name.lower().endswith(MANY)
    return known and not is_audio(path) and not path.is_dir()


def check_places(text: Path | None, text_dir: Path | None) -> None:
    """Check the options that say where transcripts are.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: there are two places.
    """
    if text_dir is not None and not text_dir.is_dir():
        raise FileNotFoundError(f"No folder {text_dir}: --text-dir names a folder of transcripts.")
    if text is not None and text_dir is not None:
        raise ValueError("--text and --text-dir are two places for the transcript: give one.")


def paired(paths: Sequence[Path], text: Path | None = None) -> Given:
    """Sort paths into recordings, folders and transcripts, and give each transcript to its recording.

    A transcript belongs to the recording of its name: the one beside it, or the only one. One transcript belongs to
    one recording whatever their names, or to several, if it is of a kind that names them. Of several for a recording
    the one in plain text counts.

    Args:
        paths: Recordings, folders and transcripts.
        text: The transcript of the one recording, which is no other's; or a manifest, CTM, STM or data folder of Kaldi
            with those of several.

    Raises:
        ValueError: a transcript without a recording, or with several; several transcripts of a recording.
        FileNotFoundError: a transcript does not exist, or there are no recordings.
    """
    audio = [path for path in paths if not is_transcript(path)]
    texts = list(dict.fromkeys(path for path in paths if is_transcript(path)))
    if text is not None and texts:
        raise ValueError(f"--text {text} and {texts[0]} are two transcripts: give one.")
    if not audio:
        raise FileNotFoundError(f"No recording: {_names(texts)} would be its transcript.")
    for path in [text] if text else texts:
        if not (path.is_file() or is_data_folder(path)):
            raise FileNotFoundError(f"No transcript {path}: expected a file, or a data folder of Kaldi.")
    for path in audio if len(audio) > 1 else ():
        _check_not_texts(path)
    if not texts and text is None:
        return Given(audio)
    found = find_audio(audio)
    only = text or (texts[0] if len(texts) == 1 else None)
    if only and len(found) > 1 and _holds_many(only) and only.stem not in {path.stem for path in found}:
        return Given(audio, {absolute(path): only for path in found})
    if text is not None and len(found) > 1:
        raise ValueError(f"--text is the transcript of one file; for {len(found)} files use --text-dir.")
    if text is not None or len(found) == len(texts) == 1:
        return Given(audio, {absolute(found[0]): text or texts[0]})
    return Given(audio, _by_name(found, texts))


def _holds_many(text: Path) -> bool:
    return text.is_dir() or text.name.lower().endswith(MANY)


def _by_name(recordings: Sequence[Path], texts: Sequence[Path]) -> dict[Path, Path]:
    """Give transcripts to the recordings of their names."""
    named: dict[str, list[Path]] = defaultdict(list)
    for path in recordings:
        named[path.stem].append(path)
    found: dict[Path, list[Path]] = defaultdict(list)
    for text in texts:
        same = named[text.stem]
        beside = [path for path in same if absolute(path).parent == absolute(text).parent]
        owners = beside or same
        if not owners:
            raise ValueError(
                f"{text} is named after none of the recordings ({_names(recordings)}): name it as one of them, or "
                "give one recording and its transcript."
            )
        if len(owners) > 1:
            raise ValueError(f"{text} may belong to {_names(owners)}: put it beside its recording.")
        found[absolute(owners[0])].append(text)
    return {recording: _one(recording, some) for recording, some in found.items()}


def _one(recording: Path, texts: Sequence[Path]) -> Path:
    plain = [text for text in texts if text.suffix in TEXT_SUFFIXES]
    if len(texts) > 1 and len(plain) != 1:
        raise ValueError(f"{_names(texts)} are transcripts of {recording.name}: give one.")
    return plain[0] if plain else texts[0]


def _check_not_texts(folder: Path) -> None:
    """Raise ValueError for one of several folders that has transcripts and no recordings."""
    if not folder.is_dir() or any(map(is_audio, folder.rglob("*"))):
        return
    if any(path.suffix in TEXT_SUFFIXES for path in folder.rglob("*")):
        raise ValueError(f"{folder} has transcripts and no recordings: give it as --text-dir {folder}.")


def _names(paths: Sequence[Path]) -> str:
    some = ", ".join(str(path) for path in paths[:_LISTED])
    return f"{some} ..." if len(paths) > _LISTED else some
