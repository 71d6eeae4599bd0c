"""Files of the matches of a clip."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isotone import format as files
from isotone.alignment import Alignment, Segment, Tier
from isotone.batch.inputs import absolute, readable
from isotone.batch.ledger import Entry, Ledger, State
from isotone.batch.writers import Spec, writer_for
from isotone.files import check_folder
from isotone.search.query import Match

#: File of all matches.
RESULTS = "results.json"
# Owner of a search's files in the ledger: no recording has such a name.
_ID, _COMMAND = "//search", "search query"
_TIER = "matches"


def write_matches(
    matches: Sequence[Match], clip: Path, out: Path, formats: Sequence[Spec],
    *, threshold: float | None = None, overwrite: bool = False,
) -> list[Path]:  # fmt: skip
    """Write ``results.json``, and for every recording with a match a file per format, with a tier ``matches``.

    The label of a segment is the clip's name, the rank and the score. Unchanged files of an earlier search are
    replaced, or removed if there are no matches for them now.

    Args:
        matches: Matches of the clip.
        clip: The file that was searched for.
        out: Folder of the files.
        formats: Names of formats, or mappings of their names and options.
        threshold: The least score of the matches, if there was one.
        overwrite: Replace files that no search wrote, or that were changed since.

    Raises:
        LookupError: no such format.
        FileExistsError: such files exist and must not be replaced; nothing is written.
    """
    about = about_matches(matches, clip, threshold)
    contents = {RESULTS: json.dumps(about, indent=1, ensure_ascii=False).encode()}
    contents |= _contents(matches, readable(clip.stem), formats)
    check_folder(out)
    with Ledger(out) as ledger:
        taken = [name for name in contents if not _replaceable(ledger, name)]
        if taken and not overwrite:
            raise FileExistsError(
                f"{out} has files that no search wrote, or that were changed since: {', '.join(taken)}. Choose "
                "another --out, or replace them with --overwrite."
            )
        entry = Entry(_ID, readable(clip), readable(absolute(clip)), _COMMAND)
        before = set(ledger.names(entry))
        ledger.write(entry, contents, overwrite=overwrite)
        ledger.forget(before - contents.keys())
    return [out / name for name in contents]


def about_matches(matches: Sequence[Match], clip: Path, threshold: float | None = None) -> dict[str, Any]:
    """Return the content of ``results.json``; see :func:`write_matches`."""
    rows = [asdict(match) for match in matches]
    return {"clip": readable(clip), "threshold": threshold, "matches": rows}


def _replaceable(ledger: Ledger, name: str) -> bool:
    state = ledger.state(name)
    ours = state in (State.WRITTEN, State.OLD) and ledger.owner(name) == (_ID, _COMMAND)
    return state is State.ABSENT or ours


def _contents(matches: Sequence[Match], clip: str, specs: Sequence[Spec]) -> dict[str, bytes]:
    """Return the contents of the files, by name."""
    contents: dict[str, bytes] = {}
    writers = [writer_for(spec, [_TIER]) for spec in specs]
    for path in dict.fromkeys(match.file for match in matches):
        own = sorted((m for m in matches if m.file == path), key=lambda m: m.start_s)
        segments = (Segment(f"{clip} #{m.rank} {m.score:.3f}", m.start_s, m.end_s) for m in own)
        tier = Tier(_TIER, tuple(segments))
        alignment = Alignment(own[0].id, own[0].duration, (tier,))
        for writer in writers:
            file = files.file_name(alignment.id, writer.suffix)
            if file in (RESULTS, *contents):
                raise ValueError(f"Two files would be named {file}: choose other formats.")
            contents[file] = writer.dumps(alignment).encode()
    return contents
