"""The matches of a clip as files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.files import atomic_write, check_folder
from isotone.inputs import readable
from isotone.registries import formats as format_registry
from isotone.search.query import Match
from isotone.search.store import digest_of

#: What all matches are written to; it also says which files belong to them.
RESULTS = "results.json"


def write_matches(
    matches: Sequence[Match], clip: Path, out: Path, format_names: Sequence[str],
    *, threshold: float | None = None, overwrite: bool = False,
) -> list[Path]:  # fmt: skip
    """Write ``results.json``, and of every recording with a match a file in each format, with a tier ``matches``.

    A segment's label is the clip's name, the rank and the score. Files of an earlier search that nobody changed are
    replaced, or removed where there is nothing to write to them any more.

    Args:
        matches: Of the clip.
        clip: The file that was searched for.
        out: Folder of the files.
        format_names: Formats.
        threshold: The score that the matches had to reach, if any.
        overwrite: Replace files that a search did not write, or that were changed since.

    Raises:
        LookupError: no such format.
        FileExistsError: such files are there, and are not to be replaced; nothing is written.
    """
    contents = _contents(matches, clip, format_names)
    check_folder(out)
    ours = _written(out)
    taken = [name for name in contents if _there(out / name) and not _same(out / name, ours, name)]
    if _there(out / RESULTS) and ours is None:
        taken.insert(0, RESULTS)
    if taken and not overwrite:
        raise FileExistsError(
            f"{out} has files that no search wrote, or that were changed since: {', '.join(taken)}. Choose another "
            "--out, or replace them with --overwrite."
        )
    about = {
        "clip": readable(clip), "threshold": threshold, "matches": [asdict(match) for match in matches],
        "written": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in contents.items()},
    }  # fmt: skip
    # first what says which files are a search's, so that a search that is killed leaves none that are nobody's
    for name, text in {RESULTS: json.dumps(about, indent=1, ensure_ascii=False), **contents}.items():
        with atomic_write(out / name) as file:
            file.write(text)
    for name in (ours or {}).keys() - contents.keys():
        if _same(out / name, ours, name):
            (out / name).unlink()
    return [out / RESULTS, *(out / name for name in contents)]


def _contents(matches: Sequence[Match], clip: Path, format_names: Sequence[str]) -> dict[str, str]:
    """The files' text, by name."""
    contents: dict[str, str] = {}
    for path in dict.fromkeys(match.file for match in matches):
        own = sorted((m for m in matches if m.file == path), key=lambda m: m.start_s)
        stem = readable(clip.stem)
        tier = Tier(
            "matches", tuple(Segment(f"{stem} #{m.rank} {m.score:.3f}", m.start_s, m.end_s) for m in own)
        )
        alignment = Alignment(own[0].id, own[0].duration, (tier,))
        for name in dict.fromkeys(format_names):
            writer = format_registry.build(name)
            if isinstance(getattr(writer, "tier", None), str):  # formats of one tier take the one there is
                writer = format_registry.build(name, tier=tier.name)
            file = files.file_name(alignment.id, writer.suffix)
            if file in (RESULTS, *contents):
                raise ValueError(f"Two files would be named {file}: choose other formats.")
            contents[file] = writer.dumps(alignment)
    return contents


def _written(out: Path) -> dict[str, str] | None:
    """The files that an earlier search wrote to a folder, with digests; None where there was none."""
    try:
        about = json.loads((out / RESULTS).read_text(encoding="utf-8"))
        # those of older versions do not say which
        written = about.get("written", {}) if "matches" in about and "clip" in about else None
        return None if written is None else {n: str(d) for n, d in written.items() if Path(n).name == n}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _same(path: Path, ours: dict[str, str] | None, name: str) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and ours is not None and ours.get(name) == digest_of(path)
