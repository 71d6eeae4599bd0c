"""Pages of recordings as files of an output folder, and their index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotone.alignment import Alignment
from isotone.batch.inputs import readable
from isotone.batch.ledger import Entry, Ledger

#: Name of a page among the formats of a recording's files, and the end of its file's name.
PAGE, PAGE_SUFFIX = "page", ".page.html"
#: The index of an output folder's pages.
INDEX = "index.html"

_ABOUT = "page"


def page_of(
    path: Path,
    id: str,
    samples: np.ndarray,
    sample_rate: int,
    alignments: Mapping[str, Alignment],
    notes: Sequence[str],
) -> bytes:
    """Make the content of a recording's page; see :func:`isotone.report.recording_page.recording_page`."""
    from isotone.report.recording_page import recording_page  # it imports matplotlib

    facts: dict[str, object] = {
        "recording": readable(path.name),
        "seconds": f"{len(samples) / sample_rate:.2f}",
    }
    score = next(iter(alignments.values())).score
    if score is not None:
        facts["score"] = f"{score:.3f} nats per token"
    facts["tiers by"] = ", ".join(alignments)
    return recording_page(id, samples, sample_rate, alignments, notes=notes, facts=facts).encode()


def about(alignment: Alignment) -> dict[str, Any]:
    """Return what the index tells of an alignment, for its entry in the ledger."""
    from isotone.report.recording_page import doubts

    return {"seconds": alignment.duration, _ABOUT: doubts(alignment)}


def index(entries: Iterable[Entry], ledger: Ledger) -> bytes:
    """Make the index of the pages that an output folder has, with the recordings that failed."""
    from isotone.report.index_page import Listed, index_page

    rows = []
    for entry in entries:
        if entry.error:
            rows.append(Listed(entry.file, error=entry.error))
            continue
        file = next((name for name in ledger.names(entry) if name.endswith(PAGE_SUFFIX)), "")
        if file and entry.analysis and _ABOUT in entry.analysis:
            known, seconds = entry.analysis[_ABOUT], entry.analysis["seconds"]
            worst = [(label, time, reason) for label, time, reason in known["worst"]]
            numbers = (known["words"], known["confidence"], known["doubtful"])
            rows.append(Listed(entry.id, file, seconds, *numbers, worst, entry.doubt, entry.warnings))
    return index_page(rows).encode()
