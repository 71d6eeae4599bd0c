"""An index of vectors on disk: a folder of files, and ``index.json``, which describes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isotone.files import digest_of

#: Of the folder's layout; readers refuse others.
VERSION = 1
METADATA = "index.json"


class CorruptIndex(ValueError):
    """A saved index is damaged: a file is missing, cut short or changed."""


class IndexMismatch(ValueError):
    """A saved index is of another class, version or model than the one expected."""


def write_metadata(folder: Path, name: str, fingerprint: str, **more: Any) -> None:
    """Write ``index.json``, with the size and SHA-256 of every other file there."""
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": digest_of(path)}
        for path in sorted(folder.iterdir())
    }
    about = {"version": VERSION, "name": name, "fingerprint": fingerprint, **more, "files": files}
    (folder / METADATA).write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_metadata(folder: Path, name: str, fingerprint: str | None, *, verify: bool = True) -> dict[str, Any]:
    """Read ``index.json`` and check the folder against it.

    Args:
        folder: Of the index.
        name: The class that reads it.
        fingerprint: What made the vectors to search with. None: not checked.
        verify: True to read all files and compare their SHA-256; sizes are always compared.

    Raises:
        FileNotFoundError: there is no index.
        CorruptIndex: it is damaged.
        IndexMismatch: it is of another class, version or fingerprint.
    """
    path = folder / METADATA
    if not path.is_file():
        raise FileNotFoundError(f"There is no index at {folder}: it has no {METADATA}.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version, files = about["version"], dict(about["files"])
        made_by, made_from = about["name"], about["fingerprint"]
        sizes = {file: (int(of["bytes"]), str(of["sha256"])) for file, of in files.items()}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptIndex(f"{path} is damaged ({type(error).__name__}: {error}).") from error
    if version != VERSION:
        raise IndexMismatch(f"{path} has format version {version}; this isotone reads {VERSION}.")
    if made_by != name:
        raise IndexMismatch(f"{folder} holds an index {made_by!r}; expected {name!r}.")
    if fingerprint is not None and made_from != fingerprint:
        raise IndexMismatch(
            f"{folder} was made by {made_from!r}, and is to be searched with vectors of {fingerprint!r}: "
            "their vectors cannot be compared. Build the index anew."
        )
    for file, (size, digest) in sizes.items():
        _check(folder / file, size, digest if verify else None)
    return dict(about)


def _check(path: Path, size: int, digest: str | None) -> None:
    if not path.is_file():
        raise CorruptIndex(f"The index lacks its file {path}.")
    found = path.stat().st_size
    if found != size:
        raise CorruptIndex(f"{path} is damaged: it has {found} bytes of {size}.")
    if digest is not None and digest_of(path) != digest:
        raise CorruptIndex(f"{path} is damaged: its SHA-256 is not that of the file that was saved.")
