"""isotone-light against isotone: the same recordings, aligned by both, ``python -m benchmarks.light FOLDER ...``.

Both must be installed: ``python -m light.build dist && pip install --no-deps dist/isotone_light*.whl``. Prints the
number of recordings and the largest difference of a time; the exit code is 1 where one is above 1 ms, or where labels
differ. Folders are of the kinds that ``benchmarks.doubt`` reads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.doubt import transcripts
from isotone import audio
from isotone.model import Model
from isotone.pipeline import Pipeline

#: Largest difference of a time, in seconds, that counts as the same.
TOLERANCE_S = 1e-3


def compared(folders: list[Path], limit: int | None) -> Iterator[tuple[str, float, bool]]:
    """Align recordings by both; yield their names, the largest difference of a time in seconds, and if labels agree."""
    from isotone_light.calls import pipeline
    from isotone_light.core.quick.one import align_one

    theirs, ours = pipeline(), Pipeline(Model.load("english"))
    rows = (row for folder in folders for row in transcripts(folder))
    for path, text in islice(rows, limit):
        found = align_one(theirs, "english", path, text)
        expected = ours.align(path.stem, audio.load(path, 16_000), ours.encode(text))
        yield str(path), *difference(found.alignment, expected.alignment)


def difference(one: Any, other: Any) -> tuple[float, bool]:
    """Compute the largest difference of a time in seconds between two alignments, and if their labels agree."""
    rows = [[(tier.name, s.label) for tier in a.tiers for s in tier] for a in (one, other)]
    if rows[0] != rows[1]:
        return float("inf"), False
    both = zip((s for t in one.tiers for s in t), (s for t in other.tiers for s in t))
    return max((max(abs(a.start - b.start), abs(a.end - b.end)) for a, b in both), default=0.0), True


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="+", type=Path, help="folders of recordings with transcripts beside them"
    )
    parser.add_argument("--limit", type=int, help="most recordings (default: all)")
    options = parser.parse_args()
    found = list(compared(options.folders, options.limit))
    worst = max(found, key=lambda row: row[1])
    off = [name for name, seconds, _ in found if seconds > TOLERANCE_S]
    summary = {
        "recordings": len(found), "largest difference ms": 1000 * worst[1], "in": Path(worst[0]).name,
        "above 1 ms": len(off), "other labels": sum(not same for _, _, same in found),
    }  # fmt: skip
    print(json.dumps(summary, indent=2))
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
