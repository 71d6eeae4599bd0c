"""Inputs of commands: audio files, their names, and their transcripts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from isotone.audio import AUDIO_SUFFIXES, DECODED_SUFFIXES, is_audio, without_copies
from isotone.batch.tagged import tagged
from isotone.transcripts import Passage, TranscriptError, open_source, sources_of
from isotone.transcripts.kaldi import is_data_folder
from isotone.transcripts.kinds import KINDS
from isotone.transcripts.reading import TIERED, TIMED

TEXT_SUFFIXES = (".txt", ".lab", ".TXT", ".LAB")

# Endings of texts that are neither recordings nor transcripts.
_NOTES = (".md", ".rst")

# TIMIT's prompts begin with the numbers of the first and the last sample
_PROMPT = re.compile(r"\s*0\s+(\d+)\s+(?=\S)")

# Passages with a wrong time that are named.
_NAMED = 5


@dataclass(frozen=True)
class Recording:
    """An audio file and its name.

    Attributes:
        path: The file, as given or found.
        id: Its path below the given folder, without ending, with ``/`` between folders. For a file given by itself, its
            name without ending.
    """

    path: Path
    id: str


def find_recordings(paths: Sequence[Path]) -> list[Recording]:
    """Find the recordings among paths, each once; folders are searched with their subfolders and links.

    A recording's name depends only on its own path. A video beside plain audio of the same name is left out. Of nested
    folders the outermost counts. A missing file is kept, and becomes an error of that file. Texts, which a pattern such
    as ``speech/*`` names as well, are left out.

    Raises:
        FileNotFoundError: none of the paths exists, or there is no audio in them.
    """
    if not any(path.exists() for path in paths):
        raise FileNotFoundError(f"No such file or folder: {', '.join(map(str, paths))}.")
    folders = {p.resolve(): p for p in paths if p.is_dir()}
    outer = [p for real, p in folders.items() if not folders.keys() & set(real.parents)]
    found = [
        Recording(path, readable(path.relative_to(folder).with_suffix("").as_posix()))
        for folder in outer
        for path in _audio_in(folder, frozenset({folder.resolve()}))
    ]
    known = {absolute(recording.path) for recording in found}
    for path in paths:
        if not (path.is_dir() or is_written(path)) and absolute(path) not in known:
            found.append(Recording(path, readable(path.stem)))
            known.add(absolute(path))
    if not found:
        raise FileNotFoundError(
            f"No audio ({', '.join(sorted(AUDIO_SUFFIXES | DECODED_SUFFIXES))}) in {', '.join(map(str, paths))}."
        )
    return found


def is_written(path: Path) -> bool:
    """Tell by its name if a file that is there is a text, and no recording."""
    known = path.suffix.lower() in (*KINDS, *TEXT_SUFFIXES, *_NOTES)
    return known and not is_audio(path) and path.is_file()


def find_audio(paths: Sequence[Path]) -> list[Path]:
    """Find the audio files among paths, each once; see :func:`find_recordings`."""
    return [recording.path for recording in find_recordings(paths)]


def _audio_in(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    """Find audio below a folder, in order of names; ``above`` has its parent folders, against circular links."""
    for path in without_copies(sorted(folder.iterdir())):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            if (real := path.resolve()) not in above:
                yield from _audio_in(path, above | {real})
        # a broken link is kept, so that the missing recording is reported
        elif is_audio(path) and (path.is_file() or path.is_symlink()):
            yield path


def readable(text: Path | str) -> str:
    """Escape text that UTF-8 cannot hold; a file's name can be any bytes."""
    return str(text).encode("utf-8", "backslashreplace").decode()


def ids_of(found: Sequence[Path]) -> list[str]:
    """Return file stems, with as many parent folders as needed to make equal ones different, ignoring case."""
    paths = [absolute(p) for p in found]
    twins = Counter((p.parent, p.stem.casefold()) for p in paths)
    names = stems = [readable(p.name if twins[p.parent, p.stem.casefold()] > 1 else p.stem) for p in paths]
    for depth in range(1, max(len(p.parts) for p in paths) + 1):
        count = Counter(name.casefold() for name in names)
        if len(count) == len(names):
            break
        names = [
            name if count[name.casefold()] == 1 else _longer(path, stem, depth)
            for path, stem, name in zip(paths, stems, names)
        ]
    return names


def _longer(path: Path, stem: str, depth: int) -> str:
    """Prefix the stem with ``depth`` parent folders; return the whole path where there are fewer."""
    parents = path.parent.parts[1:]
    return "_".join((*parents[-depth:], stem)) if depth <= len(parents) else str(path)


def absolute(path: Path) -> Path:
    """Return the path from the root with its folders resolved; a link to a file keeps its own name."""
    return path.parent.resolve() / path.name


@dataclass(frozen=True)
class TranscriptFile:
    """The transcript of an audio file.

    Attributes:
        path: The file to read.
        others: Other candidates of the same name and folder, which are not read.
    """

    path: Path
    others: tuple[Path, ...] = ()

    @property
    def files(self) -> dict[str, Path]:
        """The files that it consists of, by their roles."""
        return sources_of(self.path)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the choice, for people."""
        others = " or ".join(path.name for path in self.others)
        return (f"its transcript is {self.path.name}, not {others} beside it",) if others else ()


def find_transcript(
    audio: Path,
    folder: Path | None,
    own: Callable[[Path], bool] = lambda path: False,
    tiers: Sequence[str] = (),
) -> TranscriptFile:
    """Find the transcript of an audio file, in a folder or beside the audio.

    Plain text comes before transcripts with times, and these before such with a language in their name, as
    ``film.en.srt``. Where tiers are asked for, TextGrids and ELAN's files come first. A data folder of Kaldi holds the
    transcripts itself.

    Args:
        audio: The audio file.
        folder: The folder of transcripts; None: beside the audio.
        own: Tells of files that are results themselves, and no transcripts.
        tiers: The tiers that are asked for.

    Raises:
        FileNotFoundError: there is no transcript of that name, or there are several with languages.
    """
    if folder is None:
        folders = [audio.parent]
    elif is_data_folder(folder):
        return TranscriptFile(folder)
    else:
        # in subfolders like those of the audio, the longest common path first, or in the folder itself
        parents = absolute(audio).parent.parts[1:]
        folders = [folder.joinpath(*parents[start:]) for start in range(len(parents) + 1)]
    if tiers and (first := _first(folders, audio.stem, TIERED, own)):
        return TranscriptFile(first)
    for one in folders:
        if texts := [path for path in _siblings(one, audio.stem) if not own(path)]:
            return TranscriptFile(texts[0], tuple(p for p in texts if not p.samefile(texts[0])))
    if first := _first(folders, audio.stem, TIMED, own):
        return TranscriptFile(first)
    found = [path for one in folders for path in tagged(one, audio.stem) if path.is_file() and not own(path)]
    if len(found) == 1:
        return TranscriptFile(found[0])
    if found:
        raise FileNotFoundError(
            f"no transcript: {' and '.join(path.name for path in found[:_NAMED])} may be it. Name one of them "
            f"{audio.stem}{found[0].suffix}, or give it with the recording."
        )
    raise FileNotFoundError(
        f"no transcript: expected {audio.stem}.txt, .lab or one with times ({', '.join(TIMED[:4])} ...) in "
        f"{folder or audio.parent}{_unread(folders, audio, own)}"
    )


def transcript_of(
    audio: Path,
    given: Mapping[Path, Path] | None,
    folder: Path | None,
    own: Callable[[Path], bool] = lambda path: False,
    tiers: Sequence[str] = (),
) -> TranscriptFile:
    """Return the transcript that a recording was given (:class:`isotone.batch.pairs.Given`), or find it."""
    path = given.get(absolute(audio)) if given else None
    return TranscriptFile(path) if path else find_transcript(audio, folder, own, tiers)


def _first(
    folders: Sequence[Path], stem: str, suffixes: Sequence[str], own: Callable[[Path], bool]
) -> Path | None:
    """Find the first file of a name, in folders in order; None if there is none."""
    paths = (one / f"{stem}{suffix}" for one in folders for suffix in suffixes)
    return next((path for path in paths if path.is_file() and not own(path)), None)


def _siblings(folder: Path, stem: str) -> Iterator[Path]:
    paths = (folder / f"{stem}{suffix}" for suffix in TEXT_SUFFIXES)
    return (path for path in paths if path.is_file())


def _unread(folders: Sequence[Path], audio: Path, own: Callable[[Path], bool]) -> str:
    """Name a file that could be the transcript but is a result itself, or of a kind that is not read."""
    suffixes = dict.fromkeys((*TEXT_SUFFIXES, *TIMED, *KINDS))
    for path in (one / f"{audio.stem}{suffix}" for one in folders for suffix in suffixes):
        if not path.is_file() or (path.suffix == ".jsonl" and own(path)):  # a list of files that failed
            continue
        if own(path):
            return f". isotone wrote {path.name}: it is no transcript unless you correct it"
        return f". There is {path.name} ({KINDS[path.suffix]}): save its words as a .txt file in UTF-8."
    return ""


def read_passages(
    path: Path,
    seconds: float,
    recording: Path | None = None,
    only: bool = True,
    note: Callable[[str], None] = lambda warning: None,
    tiers: Sequence[str] = (),
) -> list[Passage]:
    """Read a transcript.

    In plain text the sample numbers that begin TIMIT's prompts become spaces, so that positions in the text are those
    in the file.

    Args:
        path: A transcript of any kind that :mod:`isotone.transcripts` reads.
        seconds: Duration of the audio, which such a prompt must match.
        recording: The audio, which a transcript of several recordings must name.
        only: See :meth:`isotone.transcripts.Source.of`.
        note: Is told of an encoding that was guessed, of tiers that are left out, and of times that cannot be right.
        tiers: See :func:`isotone.transcripts.open_source`.

    Raises:
        TranscriptError: the transcript cannot be read, is empty, is not of this recording, or has no such tier.
    """
    source = open_source(path, tiers)
    found = source.of(recording, only) if recording else list(source.passages)
    if (
        source.plain
        and (prompt := _PROMPT.match(found[0].text))
        and abs(int(prompt[1]) / 16_000 - seconds) < 0.1
    ):
        found = [replace(found[0], text=" " * prompt.end() + found[0].text[prompt.end() :])]
    if not any(passage.text.strip() for passage in found):
        raise TranscriptError(f"{path} is empty: expected the transcript.")
    if source.warning:
        note(source.warning)
    if wrong := [passage for passage in found if passage.note]:
        more = f", and {len(wrong) - _NAMED} more such" if len(wrong) > _NAMED else ""
        note("; ".join(f"{path.name}, {p.where}: {p.note}" for p in wrong[:_NAMED]) + more)
    return found


def read_text(
    path: Path,
    seconds: float,
    recording: Path | None = None,
    note: Callable[[str], None] = lambda warning: None,
    tiers: Sequence[str] = (),
) -> str:
    """Read the text of a transcript, a line for every passage; see :func:`read_passages`."""
    found = read_passages(path, seconds, recording, note=note, tiers=tiers)
    return "\n".join(passage.text for passage in found)
