"""Files of alignments: read any, write any, a folder at once.

The formats are plugins (``isotone.formats.names()``); this module finds the one a file needs, takes care of
encodings and file names, and names the file in every error.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from isotone.alignment import Alignment
from isotone.files import atomic_write, safe_name
from isotone.format.reading import FormatError, decode
from isotone.interfaces import Format
from isotone.registries import formats
from isotone.registry import BrokenPlugin, DuplicatePlugin

_BY_SUFFIX: dict[str, str | dict[str, str]] = {
    ".textgrid": "textgrid",
    ".ctm": "ctm",
    ".json": "json",
    ".csv": "csv",
    ".txt": "audacity",
    ".phn": {"name": "timit", "tier": "phones"},
    ".wrd": {"name": "timit", "tier": "words"},
    ".srt": "srt",
    ".vtt": "vtt",
    ".eaf": "elan",
}

#: Suffixes in order of exactness; what is not named comes after.
_EXACT = (".json", ".textgrid", ".csv", ".ctm")


@runtime_checkable
class ManyUtterances(Protocol):
    """A format whose files hold several utterances."""

    def loads_all(self, text: str) -> list[Alignment]:
        """Every utterance of a file's text."""
        ...


class Folder(NamedTuple):
    """What :func:`read_folder` found.

    Attributes:
        alignments: By utterance id.
        errors: The files that could not be read, each with what is wrong.
    """

    alignments: dict[str, Alignment]
    errors: list[tuple[Path, Exception]]


def read(path: Path | str, format: str | Format | None = None) -> Alignment:
    """Read a file.

    Args:
        path: The file, in UTF-8 or in UTF-16 with a byte order mark. Its name without suffix is the
            utterance id, where the file does not hold one.
        format: A format's name, or one that is built; else the suffix decides, in any case (``.txt`` is
            Audacity).

    Raises:
        FormatError: the file is not of the format, or no format has its suffix; the message has file and
            line.
        NotImplementedError: the format is write-only.
    """
    path = Path(path)
    if format is None:
        found = _for_suffix(path.suffix)
        if found is None:
            raise FormatError(
                f"{path}: expected a suffix of {', '.join(sorted(_BY_SUFFIX))}; "
                f"got {path.suffix!r}: name the format."
            )
        format = found
    return _load(path, _built(format), path.stem)[0]


def read_folder(path: Path | str) -> Folder:
    """Read every alignment file below a folder; what cannot be read is reported and does not stop the rest.

    An id is the path below the folder without suffix (``dr1-fvmh0/sa1``), where the file does not hold one.
    TIMIT's ``.phn`` and ``.wrd`` of one utterance become one alignment, as long as the ``.txt`` beside them
    says. A ``.txt`` beside any other alignment file is its transcript and left alone, as are hidden files,
    suffixes that no format has, and write-only formats. Files of one name in several formats are taken for the
    same alignment, of which the most exact is read: JSON, TextGrid, then the others. Where two files hold one id
    otherwise, the first in order of names is kept and the other reported.

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
            readers[suffix] = _for_suffix(suffix)
        if readers[suffix] is not None and not any(
            part.startswith(".") for part in file.relative_to(root).parts
        ):
            groups.setdefault(file.with_suffix(""), []).append(file)
    contents = Folder({}, [])
    for stem, files in groups.items():
        id = stem.relative_to(root).as_posix()
        timit = [f for f in files if f.suffix.lower() in (".phn", ".wrd")]
        others = [f for f in files if f not in timit and (f.suffix.lower() != ".txt" or len(files) == 1)]
        others.sort(
            key=lambda f: _EXACT.index(f.suffix.lower()) if f.suffix.lower() in _EXACT else len(_EXACT)
        )
        for members, load in [
            *([(timit, _load_timit)] if timit else []),
            *(([f], _load_all) for f in others),
        ]:
            try:
                found = load(members, readers, id)
            except NotImplementedError:
                continue
            except (ValueError, OSError) as error:
                contents.errors.append((members[0], error))
                continue
            for alignment in found:
                if alignment.id in contents.alignments:
                    problem = FormatError(
                        f"{members[0]}: utterance {alignment.id!r} was read from another file already."
                    )
                    contents.errors.append((members[0], problem))
                else:
                    contents.alignments[alignment.id] = alignment
            break  # the others say the same
    return contents


def write(alignment: Alignment, folder: Path | str, format: str | Format) -> Path:
    """Write a file into a folder, whole or not at all.

    Args:
        alignment: What to write.
        folder: Where; it is made if need be.
        format: A format's name, or one that is built.

    Returns:
        The file: the id and the format's suffix. An id that cannot be a file name is cleaned, and a digest of
        the id added so that no two ids share a file.
    """
    built = _built(format)
    path = Path(folder) / file_name(alignment.id, built.suffix)
    text = built.dumps(alignment)
    with atomic_write(path) as file:
        file.write(text)
    return path


def file_name(id: str, suffix: str = "") -> str:
    """A file name for an utterance id: the id, or if that is unsafe, the id cleaned with a digest of it."""
    name = safe_name(id)
    if name != id:
        name += f"-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return name + suffix


def _built(format: str | Format) -> Format:
    return formats.build(format) if isinstance(format, str) else format


def _for_suffix(suffix: str) -> Format | None:
    """The format of files with a suffix; imports other people's formats only where it is not one of ours."""
    spec = _BY_SUFFIX.get(suffix.lower())
    if spec is not None:
        return formats.create(spec)
    for name in formats.names():
        try:
            target = formats.get(name)
        except (BrokenPlugin, DuplicatePlugin):
            continue
        if suffix and str(getattr(target, "suffix", "")).lower() == suffix.lower():
            return formats.build(name)
    return None


def _load(path: Path, format: Format, id: str, every: bool = False) -> list[Alignment]:
    """A file's utterances; errors name the file."""
    try:
        text = decode(path.read_bytes())
        if every and isinstance(format, ManyUtterances):
            return format.loads_all(text)
        return [format.loads(text, id)]
    except ValueError as error:
        raise FormatError(f"{path}: {error}") from error


def _load_all(files: list[Path], readers: dict[str, Format | None], id: str) -> list[Alignment]:
    format = readers[files[0].suffix.lower()]
    return [] if format is None else _load(files[0], format, id, every=True)


def _load_timit(files: list[Path], readers: dict[str, Format | None], id: str) -> list[Alignment]:
    """One alignment from an utterance's ``.wrd`` and ``.phn``; its ``.txt`` says how long the audio is."""
    parts = []
    for file in sorted(files, key=lambda f: f.suffix.lower() != ".wrd"):
        parts.extend(_load_all([file], readers, id))
    duration = max(part.duration for part in parts)
    for name in (files[0].with_suffix(".txt"), files[0].with_suffix(".TXT")):
        if name.is_file():
            fields = decode(name.read_bytes()).split(maxsplit=2)
            if len(fields) > 1 and fields[1].isdecimal():
                duration = max(duration, int(fields[1]) / 16000)
    return [Alignment(id, duration, tuple(tier for part in parts for tier in part.tiers))]


__all__ = ["Folder", "FormatError", "ManyUtterances", "file_name", "read", "read_folder", "write"]
