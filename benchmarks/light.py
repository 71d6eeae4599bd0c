"""onnxruntime against torch: the same recordings, aligned by both, ``python -m benchmarks.light FOLDER ...``.

The first runs in a process of its own, which does not import torch, with the code that isotone-light has too. Prints
the number of recordings and the largest difference of a time; the exit code is 1 where one is above 1 ms, or where
labels differ. Folders are of the kinds that ``benchmarks.doubt`` reads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from isotone.alignment import Alignment
from isotone.batch.options import Options
from isotone.quick.one import align_one

#: Largest difference of a time, in seconds, that counts as the same.
TOLERANCE_S = 1e-3


def compared(folders: list[Path], limit: int | None) -> Iterator[tuple[str, float, bool]]:
    """Align recordings by both; yield their names, the largest difference of a time in seconds, and if labels agree."""
    from benchmarks.doubt import transcripts  # imports torch, which the other process is to be without

    rows = list(islice((row for folder in folders for row in transcripts(folder)), limit))
    with ProcessPoolExecutor(1, get_context("spawn")) as apart:
        found = apart.submit(aligned, rows, "onnx")
        expected, has_torch = aligned(rows, "torch")
        others, without = found.result()
    if without or not has_torch:
        raise RuntimeError("One of the processes has the other's engine.")
    for (path, _), one, other in zip(rows, others, expected):
        yield str(path), *difference(one, other)


def aligned(rows: list[tuple[Path, str]], engine: str) -> tuple[list[Alignment], bool]:
    """Align recordings with their texts by an engine; tell if torch is imported then."""
    pipeline = Options("english", engine=engine).aligning()
    done = [align_one(pipeline, "english", path, text).alignment for path, text in rows]
    return done, "torch" in sys.modules


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
