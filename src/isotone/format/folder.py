"""Folders of alignment files: for each utterance, the file with the requested tier."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from isotone.alignment import Alignment, AlignmentError
from isotone.format.files import for_suffix, load, reader
from isotone.format.reading import ForeignFileError, FormatError, decode
from isotone.format.tier_names import OverlapError, find_tier
from isotone.interfaces import Format

#: Suffixes from the most exact format; all others follow.
_EXACT = (".json", ".textgrid", ".csv", ".ctm")

#: Suffixes of files with one tier whose name is not in the file.
_UNNAMED = (".ctm", ".txt")

_TIMIT = (".phn", ".wrd")


@dataclass(frozen=True)
class Folder:
    """The contents of alignment files.

    Attributes:
        alignments: Alignments by utterance id.
        errors: Files that could not be read, each with the error.
        foreign: Files with a format's suffix but other contents (a table, a text), each with the error.
        lacking: Utterances without the requested tier: their files, and the tiers of each file.
    """

    alignments: dict[str, Alignment] = field(default_factory=dict)
    errors: list[tuple[Path, Exception]] = field(default_factory=list)
    foreign: list[tuple[Path, Exception]] = field(default_factory=list)
    lacking: dict[str, dict[Path, tuple[str, ...]]] = field(default_factory=dict)


def read_folder(path: Path | str, tier: str | None = None) -> Folder:
    """Read every alignment file below a folder; unreadable files are reported and do not stop the rest.

    If a file has no utterance id, its path below the folder without the suffix is the id (``dr1-fvmh0/sa1``).

    - TIMIT's ``.phn`` and ``.wrd`` of one utterance become one alignment; the ``.txt`` beside them gives its duration.
    - A ``.txt`` beside any other alignment file is its transcript and ignored. So are hidden files, suffixes that no
      format has, and write-only formats.
    - Files of one name in several formats count as one alignment. Of those with the tier, the most exact is read:
      TIMIT, JSON, TextGrid, CSV, then the others.
    - If two other files have the same id, the first in order of names is kept and the other one is reported.

    Args:
        path: The folder.
        tier: The required tier, by any name that :func:`isotone.format.tier_names.find_tier` accepts; None for any. In
            CTM and Audacity files the tier has no name; it counts as the required one if there are no other files.

    Raises:
        FileNotFoundError: no such folder.
    """
    root = Path(path)
    if not root.is_dir():
        raise FileNotFoundError(f"Expected a folder of alignment files; there is none at {root}.")
    readers: dict[str, Format | None] = {}
    groups: dict[Path, list[Path]] = {}
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        suffix = file.suffix.lower()
        if suffix not in readers:
            readers[suffix] = for_suffix(suffix)
        if readers[suffix] is not None and not any(
            part.startswith(".") for part in file.relative_to(root).parts
        ):
            groups.setdefault(file.with_suffix(""), []).append(file)
    contents = Folder()
    for stem, files in groups.items():
        _read_group(contents, stem.relative_to(root).as_posix(), files, readers, tier)
    return contents


def read_file(path: Path, tier: str | None = None) -> Folder:
    """Read the utterances of one file, as :func:`read_folder` does.

    Raises:
        FormatError: the file is not of its format, or no format has its suffix.
        NotImplementedError: the format is write-only.
        AlignmentError: several of its tiers match the requested one, and are not of speakers who talk at once.
        OSError: the file cannot be read.
    """
    found = _load([path], reader(path), path.stem, tier if path.suffix.lower() in _UNNAMED else None)
    try:
        has = _has(found, tier, path)
    except OverlapError:
        has = True
    missing = {} if has else {a.id: {path: _names(found)} for a in found}
    return Folder({a.id: a for a in found}, lacking=missing)


def beside(audio: Path) -> list[Path]:
    """Find the files of a recording's labels beside it: those of its name that :func:`read_beside` reads."""
    siblings = sorted(p for p in audio.parent.iterdir() if p.stem == audio.stem and p.is_file())
    return [p for p in siblings if p != audio and for_suffix(p.suffix.lower()) is not None]


def read_beside(audio: Path) -> Alignment | None:
    """Read the labels of a recording from the files beside it, see :func:`read_named`."""
    return read_named(audio.stem, beside(audio))


def read_named(id: str, files: list[Path]) -> Alignment | None:
    """Read an alignment from the files of one name, as :func:`read_folder` does; None without any.

    Raises:
        FormatError: a file of a format that cannot be read.
    """
    contents = Folder()
    if files:
        readers = {file.suffix.lower(): for_suffix(file.suffix.lower()) for file in files}
        _read_group(contents, id, files, readers, None)
    if contents.errors and not contents.alignments:
        file, error = contents.errors[0]
        raise FormatError(str(error) if str(file) in str(error) else f"{file}: {error}")
    return next(iter(contents.alignments.values()), None)


def _read_group(
    contents: Folder, id: str, files: list[Path], readers: dict[str, Format | None], tier: str | None
) -> None:
    """Read the files of one name: the first with the tier, else with speakers who overlap, else that can be read."""
    timit = [f for f in files if f.suffix.lower() in _TIMIT]
    others = [f for f in files if f not in timit and (f.suffix.lower() != ".txt" or len(files) == 1)]
    candidates = [*([timit] if timit else []), *([f] for f in sorted(others, key=_rank))]
    named = timit or any(f.suffix.lower() not in _UNNAMED for f in others)
    without: list[tuple[Path, list[Alignment]]] = []
    overlapping: list[tuple[Path, list[Alignment], OverlapError]] = []
    for members in candidates:
        format = readers[members[0].suffix.lower()]
        try:
            found = _load(members, format, id, None if named else tier) if format else []
            has = _has(found, tier, members[0])
        except NotImplementedError:
            continue
        except ForeignFileError as error:
            contents.foreign.append((members[0], error))
            continue
        except OverlapError as error:
            overlapping.append((members[0], found, error))
            continue
        except (ValueError, OSError) as error:
            contents.errors.append((members[0], error))
            continue
        if has:
            _add(contents, members[0], found)
            contents.errors.extend((file, error) for file, _, error in overlapping)
            return
        without.append((members[0], found))
    for file, found, _ in overlapping[:1]:
        _add(contents, file, found)
        return
    for file, found in without[:1]:
        _add(contents, file, found)
        contents.lacking.update({a.id: {f: _names(tiers) for f, tiers in without} for a in found})


def _add(contents: Folder, file: Path, found: list[Alignment]) -> None:
    for alignment in found:
        if contents.alignments.setdefault(alignment.id, alignment) is not alignment:
            problem = FormatError(f"{file}: utterance {alignment.id!r} was read from another file already.")
            contents.errors.append((file, problem))


def _has(found: list[Alignment], tier: str | None, file: Path) -> bool:
    try:
        tiers = [] if tier is None else [find_tier(alignment, tier) for alignment in found]
    except AlignmentError as error:
        raise type(error)(f"{file}: {error}") from None
    return tier is None or any(one is not None for one in tiers)


def _names(found: list[Alignment]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tier.name for alignment in found for tier in alignment.tiers))


def _rank(file: Path) -> int:
    suffix = file.suffix.lower()
    return _EXACT.index(suffix) if suffix in _EXACT else len(_EXACT)


def _load(files: list[Path], format: Format, id: str, tier: str | None) -> list[Alignment]:
    """Read the utterances of a file, or of TIMIT's files together; ``tier`` names a tier without a name in its file."""
    if len(files) > 1 or files[0].suffix.lower() in _TIMIT:
        return [_load_timit(files, id)]
    found = load(files[0], format, id, every=True)
    if tier is None:
        return found
    return [replace(a, tiers=tuple(replace(t, name=tier) for t in a.tiers)) for a in found]


def _load_timit(files: list[Path], id: str) -> Alignment:
    """Read one alignment from an utterance's ``.wrd`` and ``.phn``, with the duration from its ``.txt``."""
    parts = []
    for file in sorted(files, key=lambda f: f.suffix.lower() != ".wrd"):
        parts.extend(load(file, reader(file), id))
    duration = max(part.duration for part in parts)
    for name in (files[0].with_suffix(".txt"), files[0].with_suffix(".TXT")):
        if name.is_file():
            fields = decode(name.read_bytes()).split(maxsplit=2)
            if len(fields) > 1 and re.fullmatch(r"[0-9]{1,15}", fields[1]):
                duration = max(duration, int(fields[1]) / 16000)
    return Alignment(id, duration, tuple(tier for part in parts for tier in part.tiers))
