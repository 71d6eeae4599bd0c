"""The matches of a clip as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.batch.inputs import place, readable
from isotone.batch.ledger import Entry, Ledger, State
from isotone.files import check_folder
from isotone.registries import formats as format_registry
from isotone.search.query import Match

#: What all matches are written to.
RESULTS = "results.json"
# What the ledger calls the files of a search; names of recordings have no such sign.
_ID = "//search"


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
    about = {
        "clip": readable(clip), "threshold": threshold, "matches": [asdict(match) for match in matches]
    }  # fmt: skip
    contents = {RESULTS: json.dumps(about, indent=1, ensure_ascii=False).encode()}
    contents |= _contents(matches, readable(clip.stem), format_names)
    check_folder(out)
    with Ledger(out) as ledger:
        taken = [name for name in contents if not _replaceable(ledger, name)]
        if taken and not overwrite:
            raise FileExistsError(
                f"{out} has files that no search wrote, or that were changed since: {', '.join(taken)}. Choose "
                "another --out, or replace them with --overwrite."
            )
        before = set(ledger.names(_ID))
        entry = Entry(_ID, readable(clip), readable(place(clip)), "search query")
        ledger.write(entry, contents, overwrite=overwrite)
        ledger.forget(before - contents.keys())
    return [out / name for name in contents]


def _replaceable(ledger: Ledger, name: str) -> bool:
    state = ledger.state(name)
    ours = state in (State.WRITTEN, State.OLD) and ledger.owner(name) == _ID
    return state is State.ABSENT or ours


def _contents(matches: Sequence[Match], clip: str, format_names: Sequence[str]) -> dict[str, bytes]:
    """The files' content, by name."""
    contents: dict[str, bytes] = {}
    for path in dict.fromkeys(match.file for match in matches):
        own = sorted((m for m in matches if m.file == path), key=lambda m: m.start_s)
        segments = (Segment(f"{clip} #{m.rank} {m.score:.3f}", m.start_s, m.end_s) for m in own)
        tier = Tier("matches", tuple(segments))
        alignment = Alignment(own[0].id, own[0].duration, (tier,))
        for name in dict.fromkeys(format_names):
            writer = format_registry.build(name)
            if isinstance(getattr(writer, "tier", None), str):  # formats of one tier take the one there is
                writer = format_registry.build(name, tier=tier.name)
            file = files.file_name(alignment.id, writer.suffix)
            if file in (RESULTS, *contents):
                raise ValueError(f"Two files would be named {file}: choose other formats.")
            contents[file] = writer.dumps(alignment).encode()
    return contents
