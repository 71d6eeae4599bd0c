"""Transcripts from files: the kind of a file chooses its reader, and a recording chooses its passages."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePath

from isotone.audio import is_audio
from isotone.passage import MARK, Passage
from isotone.text.encodings import EncodingError, decode_text
from isotone.transcripts import kaldi
from isotone.transcripts.descriptions import without_descriptions
from isotone.transcripts.kinds import KINDS, kind_of_bytes, kind_of_name, kind_of_text
from isotone.transcripts.readers import READ, passages_of
from isotone.transcripts.tiers import check_without

# Most bytes of a compressed file's content.
_MOST = 2**31

_CONVERT = "save the words alone, without times and formatting, as a .txt file in UTF-8."


class TranscriptError(ValueError):
    """A transcript cannot be read, or does not name the recording; the message names the file."""


#: Kinds of subtitles: they come back as they were, with their line breaks and byte order mark.
_SHEETS = frozenset(KINDS[suffix] for suffix in (".srt", ".vtt", ".sbv", ".ass", ".ssa", ".ttml", ".xml"))

#: Suffixes of transcripts with times, in the order in which they are looked for beside a recording.
TIMED = (
    ".srt",
    ".vtt",
    ".TextGrid",
    ".eaf",
    ".cha",
    ".ctm",
    ".stm",
    ".ttml",
    ".ass",
    ".ssa",
    ".sbv",
    ".lrc",
    ".tsv",
    ".json",
)

#: Suffixes of those that people annotate by tiers.
TIERED = (".TextGrid", ".eaf", ".cha")

#: Suffixes of files that can hold the transcripts of many recordings.
MANY = (".jsonl", ".jsonl.gz", ".json.gz", ".json", ".ctm", ".stm")


class Source:
    """A transcript file, or a data folder of Kaldi.

    Attributes:
        path: The file or folder.
        passages: All its passages, in order.
        plain: True for plain text, which is one passage without times.
        warning: A sentence on an encoding that was guessed, and on tiers that were left out; empty where none was.
    """

    def __init__(
        self, path: Path, passages: Iterable[Passage], plain: bool = False, warning: str = ""
    ) -> None:
        self.path = path
        self.passages = tuple(passages)
        self.plain = plain
        self.warning = warning
        self._named: dict[tuple[str, ...], list[int]] = {}
        self._by_name: dict[str, set[tuple[str, ...]]] = {}
        for number, one in enumerate(self.passages):
            if one.recordings:
                self._named.setdefault(one.recordings, []).append(number)
        for names in self._named:
            for key in set().union(*map(_keys, names)):
                self._by_name.setdefault(key, set()).add(names)

    def of(self, recording: Path, only: bool = True) -> list[Passage]:
        """Return the passages of a recording.

        Args:
            recording: Its file, which need not exist.
            only: True where the source was given for this recording alone: if it names a single recording, its name
                does not matter.

        Raises:
            TranscriptError: the source names recordings, but not this one, or several that may be this one.
        """
        found = self._by_name.get(recording.stem, set()) | self._by_name.get(recording.name, set())
        if found:
            likest = {names: max((_likeness(n, recording), n) for n in names) for names in sorted(found)}
            most = max(likeness for likeness, _ in likest.values())
            best, *others = (names for names, (likeness, _) in likest.items() if likeness == most)
            if others:
                raise TranscriptError(
                    f"{self.path} has {likest[best][1]!r} and {likest[others[0]][1]!r}, and {recording} may be either: "
                    "put it into a folder that is named as there, or give its own transcript."
                )
            return [self.passages[i] for i in self._named[best]]
        if not self._named or (only and len(self._named) == 1):
            return list(self.passages)
        first = next(iter(self._named))[0]
        raise TranscriptError(
            f"{self.path} has the transcripts of {len(self._named)} recordings, from {first!r} on, and none is named "
            f"{recording.stem!r}: rename the recording, or give its own transcript."
        )

    def text(self, described: bool = True) -> str:
        """Return the text of the one recording, a line for every passage, in order of time where all have times.

        Args:
            described: False for spaces in place of what subtitles describe in brackets.

        Raises:
            TranscriptError: it is empty, or the source names several recordings.
        """
        if len(self._named) > 1:
            raise TranscriptError(
                f"{self.path} has the transcripts of {len(self._named)} recordings: expected the text of one."
            )
        passages = self.passages if described else tuple(without_descriptions(self.passages)[0])
        if all(passage.start is not None for passage in passages):
            passages = tuple(sorted(passages, key=lambda passage: passage.start or 0.0))
        if not any(passage.text.strip() for passage in passages):
            raise TranscriptError(f"{self.path} is empty: expected a text.")
        return "\n".join(passage.text for passage in passages)


def _keys(name: str) -> set[str]:
    """Return the names of files that a name in a source stands for; lecture.01 is no file of lecture."""
    path = Path(name)
    return {path.name, path.stem} if is_audio(path) else {path.name}


def _likeness(name: str, recording: Path) -> tuple[int, bool]:
    """Count the last parts of a recording's path that a name has, without ending; and tell if it has the ending."""
    if not _keys(name) & {recording.name, recording.stem}:
        return 0, False
    folders = zip(reversed(PurePath(name).parent.parts), reversed(recording.absolute().parent.parts))
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], folders))
    return 1 + shared, PurePath(name).name == recording.name


def open_source(path: Path, tiers: Sequence[str] = ()) -> Source:
    """Read a transcript; that of the last call is kept while its files do not change.

    Args:
        path: A file, in UTF-8, UTF-16 or Windows-1252, perhaps compressed (``.gz``); or a data folder of
            Kaldi.
        tiers: The tiers to read, see :func:`isotone.transcripts.tiers.spoken`. Default: those that hold speech by their
            names.

    Raises:
        TranscriptError: another encoding or kind of file, one that is not as its kind should be, or one without such a
            tier.
        OSError: it cannot be read.
    """
    stamps = tuple(
        (p.name, (about := p.stat()).st_mtime_ns, about.st_size) for p in sources_of(path).values()
    )
    return _open(path, stamps, tuple(tiers))


def sources_of(path: Path) -> dict[str, Path]:
    """Return the files that a transcript consists of, by their roles: itself, or those of a data folder."""
    if not path.is_dir():
        return {"text": path}
    return {name: path / name for name in kaldi.FILES if (path / name).is_file()}


def source_in(files: Mapping[str, Path]) -> Path:
    """Return the transcript whose files, by their roles, :func:`sources_of` gives; there may be other files."""
    return files["text"].parent if files.keys() & {"wav.scp", "segments"} else files["text"]


@lru_cache(maxsize=2)
def _open(path: Path, stamps: tuple[tuple[str, int, int], ...], tiers: tuple[str, ...]) -> Source:
    if path.is_dir() and not kaldi.is_data_folder(path):
        raise TranscriptError(
            f"{path} is a folder, and no data folder of Kaldi: expected text, and wav.scp or segments."
        )
    try:
        if path.is_dir():
            check_without(tiers)
            noted: list[str] = []
            passages = list(kaldi.read(path, noted.append))
            return Source(path, passages, warning="; ".join(noted))
        return _of_file(path, _content(path), tiers)
    except TranscriptError:
        raise
    except ValueError as error:
        raise TranscriptError(f"{path} cannot be read: {error}") from error


def _content(path: Path) -> bytes:
    """Read a file, decompressed if it is compressed."""
    data = path.read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.open(path) as file:
            data = file.read(_MOST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TranscriptError(f"{path} is damaged: {error}.") from error
    if len(data) > _MOST:
        raise TranscriptError(f"{path} is longer than {_MOST >> 30} GiB when decompressed: divide it.")
    return data


def _of_file(path: Path, data: bytes, tiers: tuple[str, ...]) -> Source:
    plain_name = Path(path.name.removesuffix(".gz"))
    kind = kind_of_bytes(data) or kind_of_name(plain_name)
    if kind is not None and kind not in READ:
        raise _not_read(path, kind)
    try:
        text, warning = decode_text(data, path.name)
    except EncodingError as error:
        raise TranscriptError(f"{path} is not text that can be read: {error}") from error
    whole, text = _marked(data) + text, re.sub(r"\r\n?", "\n", text)
    kind = _kind(kind, text)
    if kind is None:
        if "\0" in text:
            raise TranscriptError(
                f"{path} is not text that can be read, it has zero bytes: save it as UTF-8."
            )
        check_without(tiers)
        return Source(path, [Passage(text, where=path.name)], True, warning)
    if kind not in READ:
        raise _not_read(path, kind)
    noted = [warning] if warning else []
    passages = tuple(passages_of(kind, whole if kind in _SHEETS else text, tiers, noted.append))
    if not passages and text.strip():
        raise TranscriptError(f"{path}: no passages were found in it; expected {kind}.")
    return Source(path, passages, warning="; ".join(noted))


def _kind(named: str | None, text: str) -> str | None:
    """Return the kind of a text, by its name or by its form; subtitles are often named as another kind of them."""
    if named is not None and named not in _SHEETS:
        return named
    found = kind_of_text(text)
    return found if named is None or found in _SHEETS else named


def _marked(data: bytes) -> str:
    """Return the byte order mark of a file, if it has one."""
    marks = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    return MARK if data.startswith(marks) else ""


def _not_read(path: Path, kind: str) -> TranscriptError:
    return TranscriptError(f"{path} is {kind}; expected a transcript in plain text or with times: {_CONVERT}")
