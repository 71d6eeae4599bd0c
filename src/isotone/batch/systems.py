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


class Further:
    """Further alignments of recordings, which stand beside their own in their pages.

    Args:
        recordings: The recordings.
        paths: Files or folders of the alignments; a file is that of the one recording, whatever its name is.

    Raises:
        FileNotFoundError: there is no such file or folder.
    """

    def __init__(self, recordings: Sequence[Recording], paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.exists():
                raise FileNotFoundError(f"No such file or folder: {path}.")
        self.systems = [System(path, len(recordings) == 1) for path in paths]
        self.names = [system.name for system in self.systems]
        self._recordings = {absolute(recording.path): recording for recording in recordings}

    def inputs(self, path: Path) -> dict[str, Path]:
        """Return the files of a recording by their role."""
        known = self._recordings[absolute(path)] if self.systems else None
        return {
            f"beside {i} {file.suffix}": file
            for i, system in enumerate(self.systems)
            for file in (system.files(known) if known else ())
        }

    def add_to(self, alignments: dict[str, Alignment], path: Path) -> None:
        """Add the alignments of a recording to others, each under its system's name."""
        for system in self.systems:
            add(alignments, system, self._recordings[absolute(path)])


def add(alignments: dict[str, Alignment], system: System, recording: Recording) -> None:
    """Add the alignment of a system under a name that no other has."""
    found = system.read(recording)
    if found is not None:
        same = sum(name == system.name or name.startswith(f"{system.name} (") for name in alignments)
        alignments[f"{system.name} ({same + 1})" if same else system.name] = found


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
