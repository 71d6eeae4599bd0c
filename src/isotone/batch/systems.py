"""Systems: places of alignments, each with those of many recordings, and the recordings that folders of them know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isotone.alignment import Alignment
from isotone.audio import is_audio
from isotone.batch.inputs import Recording, absolute, find_recordings
from isotone.batch.ledger import NAME, Ledger
from isotone.batch.plan import stem_of
from isotone.format.folder import beside, read_file, read_named


@dataclass(frozen=True)
class System:
    """A file or a folder of alignments.

    Attributes:
        path: The file or folder.
        only: True for a file that belongs to the one recording, whatever its name is.
    """

    path: Path
    only: bool = False

    @property
    def name(self) -> str:
        """Its name in a page."""
        return self.path.resolve().name

    def files(self, recording: Recording) -> list[Path]:
        """Find the files of a recording: by its name with its folders, else by the last part; empty without any.

        A ``.txt`` of a folder is a transcript; Audacity's labels have to be given by themselves.
        """
        if not self.path.is_dir():
            many = self.path.suffix.lower() == ".ctm"
            return [self.path] if self.only or many or self.path.stem == recording.path.stem else []
        stem = stem_of(recording.id)
        for one in dict.fromkeys((stem, stem.rsplit("/", 1)[-1], recording.path.stem)):
            # the ending stands for that of a recording, which is none of its labels
            named = self.path / f"{one}.wav"
            found = beside(named) if named.parent.is_dir() else []
            if kept := [p for p in found if p.suffix.lower() != ".txt"]:
                return kept
        return []

    def read(self, recording: Recording) -> Alignment | None:
        """Read the alignment of a recording; None without one.

        Raises:
            FormatError: its file cannot be read.
        """
        files = self.files(recording)
        if self.path.is_dir():
            return read_named(recording.id, files)
        if not files:
            return None
        found = read_file(self.path).alignments
        if len(found) == 1 and self.path.suffix.lower() != ".ctm":
            return next(iter(found.values()))
        named = (found.get(key) for key in (recording.id, recording.path.stem))
        return next((one for one in named if one is not None), None)


def recordings_in(paths: Sequence[Path]) -> list[Recording]:
    """Find the recordings among paths and below folders; without any, those that the folders' ledgers name.

    Raises:
        FileNotFoundError: there are none.
    """
    audio = [path for path in paths if path.is_dir() or is_audio(path)]
    try:
        if not audio:
            raise FileNotFoundError(f"No recordings among {', '.join(map(str, paths))}.")
        return find_recordings(audio)
    except FileNotFoundError as error:
        found = [recording for path in audio if path.is_dir() for recording in _in_ledger(path)]
        if not found:
            raise FileNotFoundError(f"{error} Give the recordings as well, a file or a folder.") from None
    return list({absolute(recording.path): recording for recording in found}.values())


def _in_ledger(folder: Path) -> list[Recording]:
    """List the recordings whose alignments isotone wrote to a folder."""
    if not (folder / NAME).is_file():
        return []
    with Ledger(folder) as ledger:
        return [Recording(Path(entry.source), entry.id) for entry in ledger.entries() if not entry.error]
