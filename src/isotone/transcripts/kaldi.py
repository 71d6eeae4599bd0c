"""Reading of data folders of Kaldi and ESPnet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from isotone.format.reading import FormatError, numbered_lines
from isotone.passage import Passage
from isotone.text.encodings import decode_text
from isotone.transcripts.passages import passage

#: The files that are read; all but the first may be missing.
FILES = ("text", "segments", "utt2spk", "wav.scp")


def is_data_folder(folder: Path) -> bool:
    """Tell a data folder: it holds ``text``, and says where its utterances are."""
    return (folder / "text").is_file() and any((folder / f).is_file() for f in ("wav.scp", "segments"))


def read(folder: Path, note: Callable[[str], None] = lambda warning: None) -> Iterator[Passage]:
    """Read the utterances of a data folder.

    Recordings have the name that ``wav.scp`` gives them and, where that is a file, its path; commands (with a pipe) are
    not run. Without ``segments`` every utterance is a recording, and has no times. ``note`` is told of
    encodings that were guessed.

    Raises:
        FormatError: a line of one of the files that is not as it should be.
        EncodingError: a file is in none of the encodings that transcripts have.
        OSError: a file cannot be read.
    """
    segments = {id: value.split() for id, value, _ in _rows(folder / "segments", note)}
    speakers = {id: value for id, value, _ in _rows(folder / "utt2spk", note)}
    files = {id: value for id, value, _ in _rows(folder / "wav.scp", note) if not value.endswith("|")}
    for id, text, number in _rows(folder / "text", note):
        where = f"line {number} of text"
        recording, start, end = id, None, None
        if segments:
            found = segments.get(id, ())
            if len(found) < 3:
                raise FormatError(
                    f"{where}: expected {id!r} in segments, with recording, start and end; got {found}."
                )
            recording, start, end = found[:3]
            end = None if re.fullmatch(r"-1(\.0*)?", end) else end  # -1: to the end of the recording
        speaker = speakers.get(id)
        names = (recording, *([files[recording]] if recording in files else ()))
        # by convention an unknown speaker is named as the utterance
        yield passage(text, start, end, where, None if speaker == id else speaker, names)


def _rows(path: Path, note: Callable[[str], None]) -> Iterator[tuple[str, str, int]]:
    """Iterate over the lines of a file: name, value and number; nothing if there is no such file."""
    if not path.is_file():
        return
    content, warning = decode_text(path.read_bytes(), path.name)
    if warning:
        note(warning)
    for number, line in numbered_lines(content):
        name, *value = line.split(maxsplit=1)
        yield name, value[0].strip() if value else "", number
