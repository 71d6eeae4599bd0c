"""Reading and writing one file of an alignment.

Formats are plugins (``isotone.formats.names()``). This module chooses the format of a file, handles encodings and file
names, and names the file in every error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

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


@runtime_checkable
class ManyUtterances(Protocol):
    """A format whose files hold several utterances."""

    def loads_all(self, text: str) -> list[Alignment]:
        """Read all utterances of a file's text."""
        ...


def read(path: Path | str, format: str | Format | None = None) -> Alignment:
    """Read a file.

    Args:
        path: The file, in UTF-8 or in UTF-16 with a byte order mark. If the file has no utterance id, its name without
            the suffix is the id.
        format: A format or its name. Default: by the suffix, in any case (``.txt`` is Audacity).

    Raises:
        FormatError: the file is not of the format, or no format has its suffix; the message names the file and the
            line.
        NotImplementedError: the format is write-only.
    """
    path = Path(path)
    return load(path, _built(format) if format else reader(path), path.stem)[0]


def write(alignment: Alignment, folder: Path | str, format: str | Format) -> Path:
    """Write a file into a folder, whole or not at all.

    Args:
        alignment: The alignment.
        folder: The folder; it is created if necessary.
        format: A format or its name.

    Returns:
        The file, named by the id and the format's suffix. An id that cannot be a file name is cleaned, and a digest of
        the id is added so that no two ids share a file.
    """
    built = _built(format)
    path = Path(folder) / file_name(alignment.id, built.suffix)
    text = built.dumps(alignment)
    with atomic_write(path) as file:
        file.write(text)
    return path


def file_name(id: str, suffix: str = "") -> str:
    """Return a file name for an utterance id: the id, or if that is unsafe, the cleaned id with a digest."""
    name = safe_name(id)
    if name != id:
        name += f"-{hashlib.sha256(id.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return name + suffix


def _built(format: str | Format) -> Format:
    return formats.build(format) if isinstance(format, str) else format


def for_suffix(suffix: str, **options: Any) -> Format | None:
    """Return the format of a suffix, or None; plugins of other distributions are imported only if necessary.

    Raises:
        OptionError: the format has no such option.
    """
    spec = _BY_SUFFIX.get(suffix.lower())
    if spec is None:
        spec = next((name for name, _, own in _installed() if own == suffix.lower()), None)
    return None if spec is None else formats.create(spec, **options)


def suffixes(*, read: bool) -> list[str]:
    """Return the suffixes of all formats that are installed, of those that can be read or of all that are written."""
    readable = {
        name for name, target, _ in _installed() if getattr(target, "loads", None) is not Format.loads
    }
    own = {suffix: name for name, _, suffix in _installed()}
    for suffix, spec in _BY_SUFFIX.items():
        own[suffix] = spec if isinstance(spec, str) else spec["name"]
    return sorted(suffix for suffix, name in own.items() if name in readable or not read)


def _installed() -> Iterator[tuple[str, Any, str]]:
    """Iterate over the formats that can be used: name, class and suffix in lower case."""
    for name in formats.names():
        try:
            target = formats.get(name)
        except (BrokenPlugin, DuplicatePlugin):
            continue
        suffix = getattr(target, "suffix", "")
        if suffix and isinstance(suffix, str):
            yield name, target, suffix.lower()


def reader(path: Path) -> Format:
    """Return the format of a file by its suffix.

    Raises:
        FormatError: no format has the suffix.
    """
    found = for_suffix(path.suffix)
    if found is None:
        raise FormatError(
            f"{path}: expected a suffix of {', '.join(suffixes(read=True))}; got {path.suffix!r}: convert it, or name "
            f"its format in Python."
        )
    return found


def load(path: Path, format: Format, id: str, every: bool = False) -> list[Alignment]:
    """Read the utterance of a file, or all utterances with ``every``; errors name the file."""
    try:
        text = decode(path.read_bytes())
        if every and isinstance(format, ManyUtterances):
            return format.loads_all(text)
        return [format.loads(text, id)]
    except ValueError as error:
        kind = type(error) if isinstance(error, FormatError) else FormatError
        raise kind(f"{path}: {error}") from error
