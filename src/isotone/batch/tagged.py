"""Subtitles that are named after a recording and their language, as media servers have them: ``film.en.srt``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from isotone.audio import is_audio
from isotone.text.languages import iso_code
from isotone.transcripts.reading import TIMED

_ENDINGS = "|".join(map(re.escape, TIMED))
# the shortest name, for "hi" may say that a film is in Hindi, or that its subtitles describe sounds
_TAGGED = re.compile(
    rf"(?P<stem>.+?)\.(?P<tag>[a-z]{{2,3}}(?:[-_][a-z]{{2,4}})?)(?:\.(?:sdh|cc|hi))?(?:{_ENDINGS})",
    re.IGNORECASE,
)


def tagged(folder: Path, stem: str) -> tuple[Path, ...]:
    """Return the subtitles of a recording that have a language between its name and their ending, in order.

    Args:
        folder: The folder of transcripts; it need not exist.
        stem: Name of the recording, without ending.
    """
    try:
        changed = folder.stat().st_mtime_ns
    except OSError:
        return ()
    return _listed(folder, changed).get(stem, ())


@lru_cache(maxsize=4)
def _listed(folder: Path, changed: int) -> Mapping[str, tuple[Path, ...]]:
    """List the subtitles of a folder that have a language in their name, by that of their recording."""
    if not folder.is_dir():
        return {}
    paths = sorted(folder.iterdir())
    # film.en.srt is that of film.en.mkv, where there is such a recording
    recordings = {path.stem for path in paths if is_audio(path)}
    found: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        match = _TAGGED.fullmatch(path.name)
        if match and len(iso_code(match["tag"])) == 2 and path.stem not in recordings:
            found[match["stem"]].append(path)
    return {stem: tuple(own) for stem, own in found.items()}
